"""tocsin's own words in the language of a reader. Pure: engine/language loads the catalogues.

A text is known by its English. A sentence that is stored (what changed, why it ended) is stored in English, for whoever reads
the store; its pattern, which is in the catalogue too, recognises it again, with the values that were filled in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from string import Formatter

from msgspec import Struct, field
from msgspec.structs import replace

from engine.model.phrases import lasting, lasting_parts

VERBATIM = frozenset(("person", "text"))  # holes whose values people wrote
_SPAN = re.compile(r"(\d{1,9}) (d|h|min|s)(?: (\d{1,9}) (h|min|s))?")


def worded(pattern: str, /, **values: object) -> str:
    """Return the English sentence of a `pattern` with `{name}` holes, which a catalogue has: Words.sentence recognises it."""
    return filled(pattern, values)


def frame(pattern: str) -> str:
    """Return `pattern`, which a catalogue has: what tocsin puts around the text of a rule (see Words.framed)."""
    return pattern


def marked(*texts: str) -> tuple[str, ...]:
    """Return `texts`, which a catalogue has: those that are looked up by a variable."""
    return texts


class Words(Struct, frozen=True):
    """The words of one language.

    `texts` are translations by their English text, `patterns` those of the patterns of sentences, and `frames` those of frames,
    the most specific first. All are empty for English.
    """

    language: str = "en"
    texts: Mapping[str, str] = field(default_factory=dict)
    patterns: tuple[tuple[str, str], ...] = ()
    frames: tuple[tuple[str, str], ...] = ()

    def __call__(self, text: str, /, **values: object) -> str:
        """Return the translation of `text` with `values` in its holes; `text` itself where there is none."""
        translation = self.texts.get(text, text)
        return filled(translation, values) if values else translation

    def counted(self, one: str, many: str, number: int, **values: object) -> str:
        """Return the translation of `one` or `many`, by `number`, which fills the hole `{number:,}`."""
        return self(one if number == 1 else many, number=number, **values)

    def span(self, duration: timedelta) -> str:
        """Return a duration in its two largest units."""
        if not self.texts:
            return lasting(duration)
        return " ".join(self._unit(str(number), unit) for number, unit in lasting_parts(duration))

    def sentence(self, text: str) -> str:
        """Return the translation of a sentence that `worded` made, or of a text of the catalogue; else `text` itself."""
        if not self.texts or not text or text in self.texts:
            return self.texts.get(text, text)
        if (span := _SPAN.fullmatch(text)) is not None:
            units = ((span[1], span[2]), (span[3], span[4]))
            return " ".join(self._unit(number, unit) for number, unit in units if unit)
        for pattern, translation in self.patterns:
            values = values_in(text, pattern)
            if values is not None:
                return filled(translation, {n: v if n in VERBATIM else self.sentence(v) for n, v in values.items()})
        return text

    def framed(self, text: str) -> str:
        """Return the text of a rule that is in this language already with the frames around it in it too."""
        for pattern, translation in self.frames:
            values = values_in(text, pattern)
            if values is not None:
                return filled(translation, {name: self.framed(value) for name, value in values.items()})
        return text

    def beside(self, texts: Mapping[str, str]) -> Words:
        """Return these words and, where they have none, the translations of `texts`."""
        return replace(self, texts={**texts, **self.texts}) if texts else self

    def _unit(self, number: str, unit: str) -> str:
        return self(f"{{number}} {unit}", number=number)


ENGLISH = Words()
UNITS = marked("{number} d", "{number} h", "{number} min", "{number} s")


def filled(pattern: str, values: Mapping[str, object]) -> str:
    """Return `pattern` with its holes filled; the format of a hole is used for numbers only."""
    return "".join(
        literal + ("" if name is None else _formatted(values[name], spec or ""))
        for literal, name, spec, _ in Formatter().parse(pattern)
    )


def values_in(text: str, pattern: str) -> Mapping[str, str] | None:
    """Return the values that make `text` of `pattern`, none of them empty; None when none do. Linear in the text."""
    literals, holes = _split(pattern)
    at, end = len(literals[0]), len(text) - len(literals[-1])
    if not holes or not text.startswith(literals[0]) or not text.endswith(literals[-1]):
        return None
    values: dict[str, str] = {}
    for hole, literal in zip(holes[:-1], literals[1:-1], strict=True):
        begin = text.find(literal, at + 1, end)
        if begin < 0:
            return None
        values[hole], at = text[at:begin], begin + len(literal)
    values[holes[-1]] = text[at:end] if at < end else ""
    return values if at < end else None


def specificity(pattern: str) -> int:
    """Return how many characters of `pattern` are outside its holes."""
    return sum(map(len, _split(pattern)[0]))


def _split(pattern: str) -> tuple[list[str], list[str]]:
    """Return the literals of `pattern` and its holes in order: one literal more than holes."""
    parts = list(Formatter().parse(pattern))
    holes = [name for _, name, _, _ in parts if name is not None]
    literals = [literal for literal, *_ in parts]
    return ([*literals, ""] if len(literals) == len(holes) else literals), holes


def _formatted(value: object, spec: str) -> str:
    return str(value) if isinstance(value, str) else format(value, spec)
