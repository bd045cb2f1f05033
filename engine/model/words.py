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

# What the values of holes are; that of any other hole is a sentence or a text of the catalogue, and is translated as one.
FREE = frozenset(("person", "text", "labels", "cluster", "ids"))  # anything; it is never translated
TIMES = frozenset(("time", "asked"))  # with a digit; they are never translated
IDS = frozenset(("rule", "successor", "id"))  # without a space; they are never translated
NUMBERS = frozenset(("number", "most", "before"))
TERMS = frozenset(("severity", "status", "earlier"))  # single words of the catalogue
TITLE = "title"  # of an incident: anything; translated only as a whole
_OPTIONAL = frozenset(("why", "span"))  # they stay as they are where the catalogue has none
_COUNT = "incidents"  # a sentence that begins with a number
_PHRASES = frozenset(("change", "what"))  # sentences without a text of people or of rules
_DEPTH = 5  # of sentences in sentences
_PROSE = FREE | {TITLE}
_QUICK = _PROSE | TIMES | IDS | NUMBERS | TERMS
_NUMBER = re.compile(r"[0-9][0-9,]*")
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

    def about(self, duration: timedelta) -> str:
        """Return a duration in its largest unit."""
        number, unit = lasting_parts(duration)[0]
        return self._unit(str(number), unit)

    def sentence(self, text: str) -> str:
        """Return the translation of a sentence that `worded` made, or of a text of the catalogue; else `text` itself."""
        translation = self._translation(text, _DEPTH) if self.texts and text else None
        return text if translation is None else translation

    def _translation(self, text: str, depth: int, may_have_prose: bool = True) -> str | None:
        """Return the translation of a sentence with at most `depth` levels of sentences in it; None when `text` is none."""
        if text in self.texts:
            return self.texts[text]
        if (span := _SPAN.fullmatch(text)) is not None:
            units = ((span[1], span[2]), (span[3], span[4]))
            return " ".join(self._unit(number, unit) for number, unit in units if unit)
        first = None
        for pattern, translation in self.patterns if depth else ():
            values = values_in(text, pattern)
            if values is None or (not may_have_prose and values.keys() & _PROSE):
                continue
            translations = self._values(values, depth - 1)
            if translations is not None:
                sentence = filled(translation, translations)
                if TITLE in values and values[TITLE] in self.texts:
                    return sentence
                first = first or sentence
        return first

    def _values(self, values: Mapping[str, str], depth: int) -> dict[str, str] | None:
        """Return the translations of the values of holes; None when one of them is not what its hole takes."""
        translations: dict[str, str] = {}
        for hole, value in sorted(values.items(), key=lambda item: item[0] not in _QUICK):  # sentences last: they cost most
            translation = self._value(hole, value, depth)
            if translation is None:
                return None
            translations[hole] = translation
        return translations

    def _value(self, hole: str, value: str, depth: int) -> str | None:
        if hole in FREE:
            return value
        if hole in TIMES:
            return value if any(map(str.isdecimal, value)) else None
        if hole in IDS:
            return None if " " in value else value
        if hole in NUMBERS:
            return value if _NUMBER.fullmatch(value) else None
        if hole in TERMS:
            return self.texts.get(value) if value.isalpha() and value.islower() else None
        if hole == TITLE:
            return self.framed(self.texts[value]) if value in self.texts else value
        if hole == _COUNT and not value[0].isdecimal():
            return None
        translation = self._translation(value, depth, hole not in _PHRASES)
        return value if translation is None and hole in _OPTIONAL else translation

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
    """Return the values that make `text` of `pattern`, none of them empty; None when none do. A title is the longest that fits,
    any other value the shortest. Linear in the text."""
    literals, holes = _split(pattern)
    at, end = len(literals[0]), len(text) - len(literals[-1])
    if not holes or not text.startswith(literals[0]) or not text.endswith(literals[-1]):
        return None
    values: dict[str, str] = {}
    first = holes.index(TITLE) if TITLE in holes else len(holes) - 1  # the hole that takes what the others leave
    for hole, literal in zip(holes[:first], literals[1 : first + 1], strict=True):
        begin = text.find(literal, at + 1, end)
        if begin < 0:
            return None
        values[hole], at = text[at:begin], begin + len(literal)
    for hole, literal in zip(reversed(holes[first + 1 :]), reversed(literals[first + 1 : -1]), strict=True):
        begin = text.rfind(literal, at + 1, end - 1)
        if begin < 0:
            return None
        values[hole], end = text[begin + len(literal) : end], begin
    if at >= end:
        return None
    return values | {holes[first]: text[at:end]}


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
