"""Redacts secrets in evidence and captures, right after matching, so that no secret is stored or sent.

Finders (`engine/match/masking`) return the byte ranges that are secret; a visible mask replaces each. Topics, offsets, hosts
and principals stay: a diagnosis needs them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

import re2

from engine.match.checks import expression
from engine.match.digits import widened
from engine.match.fields import encoded
from engine.match.masking.hints import HINT, PHONE_HINT, hint_of
from engine.model.matches import EVIDENCE_BYTES, Value
from engine.model.records import Labels
from engine.model.redaction import Redaction

MASK = "[redacted]"
MAIL_MASK = "[e-mail]"
CARD_MASK = "[card]"
NATIONAL_ID_MASK = "[national-id]"
PHONE_MASK = "[phone]"
MOST_PASSES = 8  # usually the first masks everything and the second finds nothing more; longer texts are made on purpose

_ORDINARY = Redaction()
_Finder = Callable[[bytes], Iterable[tuple[int, int]]]
_SecretSearch = Callable[
    [bytes], Iterator[tuple[int, int, bytes]]
]  # secrets of a text: where each begins and ends, and its mask
_MASKS = tuple(mask.encode() for mask in (MASK, MAIL_MASK, CARD_MASK, NATIONAL_ID_MASK, PHONE_MASK))
_ANY_MASK = expression(r"\[(?:redacted|e-mail|card|national-id|phone)\]")
_COLOURS = expression(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# characters that are invisible but split a word: soft hyphen, joiners, zero-width blanks, marks of direction, variation
# selectors
_INVISIBLE = dict.fromkeys(
    (
        0xAD,
        0x34F,
        0x61C,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x180E,
        0xFEFF,
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        *range(0xFE00, 0xFE10),
    )
)


class Redactor:
    """Replaces secrets by visible masks. Idempotent."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._patterns = tuple(expression(pattern) for pattern in redaction.patterns)
        self._pattern_hints = tuple(map(_hint, redaction.patterns))
        self._hints = (HINT, *((PHONE_HINT,) if redaction.phone else ()), *self._pattern_hints)

    def __call__(self, text: str) -> str:
        """Return `text`, of any number of lines, with masks in place of secrets; the same object when it has none. A text that
        still has secrets after MOST_PASSES is masked as a whole."""
        searches = self._searches(encoded(_plain(text)))
        return self._redacted(searches, text) if searches else text

    def alike(self, text: str) -> Callable[[str], str] | None:
        """Return a function that redacts `text`, and texts that differ from it in digits only, as this redactor does; None when
        none of them holds a secret."""
        searches = self._searches(encoded(_plain(text)))
        return partial(self._redacted, searches) if searches else None

    def part(self, part: str, text: str, redacted: str) -> str:
        """Return `part` of `text` without secrets. `redacted` is `text` redacted.

        A part that is masked in `redacted` is masked here too, even if it does not contain the name by which it is a secret.
        """
        if text is redacted:
            return part
        masked = self(part)
        return MASK if part in text and part not in redacted and masked == part else masked

    def captures(self, captures: Mapping[str, Value], text: str, redacted: str) -> Mapping[str, Value]:
        """Return `captures` of `text` without secrets; see `part`."""
        if text is redacted:
            return captures
        return {name: self._capture(value, text, redacted) for name, value in captures.items()}

    def labels(self, labels: Labels) -> Labels:
        """Return `labels` without secrets; the same object when there are none."""
        clean = {name: self(value) for name, value in labels.items()}
        return labels if clean == labels else clean

    def _capture(self, value: Value, text: str, redacted: str) -> Value:
        part = str(value)
        clean = self.part(part, text, redacted)
        return value if clean == part else clean

    def _redacted(self, searches: Sequence[_SecretSearch], text: str) -> str:
        """Return `text` redacted; `searches` are those of this text."""
        data = encoded(_plain(text))
        for passes in range(MOST_PASSES):
            masked = _masked(data, (stretch for search in searches for stretch in search(data)))
            if masked is data:
                return text if passes == 0 else data.decode("utf-8", "replace")
            data = masked
            searches = self._searches(data)
        return MASK

    def _searches(self, data: bytes) -> Sequence[_SecretSearch]:
        """Return the searches that may find a secret in a text. They are the same for all texts that differ in digits only."""
        if not any(hint.search(data) for hint in self._hints):
            return ()
        groups = _groups(self._redaction.email, self._redaction.phone)
        own = zip(self._pattern_hints, self._patterns, strict=True)
        return (
            *(search for hint, searches in groups if hint.search(data) for search in searches),
            *(partial(_by_pattern, pattern) for hint, pattern in own if hint.search(data)),
        )


@cache
def redactor_of(redaction: Redaction) -> Redactor:
    """Return the redactor for the settings `redaction`, compiled once."""
    return Redactor(redaction)


def redact(text: str) -> str:
    """Return `text` without secrets, by the settings of a configuration without `redact`."""
    return redactor_of(_ORDINARY)(text)


def cut(text: str) -> str:
    """Return the longest beginning of `text` that fits into EVIDENCE_BYTES of UTF-8; no character is split."""
    if len(text) * 4 <= EVIDENCE_BYTES:
        return text
    data = encoded(text)
    return text if len(data) <= EVIDENCE_BYTES else data[:EVIDENCE_BYTES].decode("utf-8", "ignore")


@cache
def _groups(email: bool, phone: bool) -> tuple[tuple[re2._Regexp, Sequence[_SecretSearch]], ...]:
    """Return pairs of a hint and searches, which find nothing in a text without the hint.

    The finders are imported, and so compiled, when a text may hold a secret for the first time: most logs hold none.
    """
    from engine.match.masking import (  # noqa: PLC0415
        addresses,
        assigned,
        elements,
        headers,
        near,
        personal,
        sentences,
        shapes,
        statements,
    )

    mask, mail, card, national_id, telephone = _MASKS
    groups: Mapping[str, Iterable[tuple[_Finder, bytes]]] = {
        "shapes": ((shapes.private_keys, mask), (shapes.shapes, mask)),
        "names": (
            *((find, mask) for find in (assigned.assigned, elements.elements, elements.options)),
            *((find, mask) for find in (sentences.sentences, sentences.refusals, statements.statements)),
        ),
        "commands": ((elements.commands, mask), (statements.statements, mask)),
        "protocols": ((headers.headers, mask), (headers.jaas, mask), (sentences.refusals, mask)),
        "scram": ((headers.scram, mask),),
        "addresses": ((addresses.addresses, mask), (addresses.hooks, mask)),
        "near": ((near.near, mask),),
        "numbers": ((personal.cards, card), (personal.residents, national_id), (personal.named_phones, telephone)),
        "mails": ((personal.mails, mail),) if email else (),
    }
    phones = ((PHONE_HINT, [partial(_by_finder, personal.phones, telephone)]),) if phone else ()
    return (*((hint_of(name), [partial(_by_finder, *pair) for pair in pairs]) for name, pairs in groups.items()), *phones)


def _by_finder(find: _Finder, mask: bytes, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    return ((start, end, mask) for start, end in find(data))


def _by_pattern(pattern: re2._Regexp, data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Find what the groups of a pattern match, or all that it matches if it has none."""
    for hit in pattern.finditer(data):
        groups = range(1, len(hit.groups()) + 1) or (0,)
        yield from ((*hit.span(group), _MASKS[0]) for group in groups if hit.group(group))


def _hint(pattern: str) -> re2._Regexp:
    """Return an expression that matches every text which `pattern` matches, and those that differ from it in digits only."""
    wide = widened(pattern)
    return expression("" if wide is None else wide)


def _plain(text: str) -> str:
    """Return `text` as a reader sees it: without colours and invisible characters, in compatibility form (NFKC)."""
    if "\x1b" in text:
        text = str(_COLOURS.sub("", text))
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_INVISIBLE))


def _masked(data: bytes, stretches: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return `data` with a mask in place of every stretch, one for those that overlap; the same object when none is hidden."""
    pieces: list[bytes] = []
    at = 0
    for start, end, mask in _joined(data, stretches):
        pieces += (data[at:start], mask)
        at = end
    return b"".join((*pieces, data[at:])) if pieces else data


def _joined(data: bytes, stretches: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield stretches in order, those that overlap joined into one. A stretch that overlaps an earlier mask takes in all of it;
    one that hides nothing else is left out."""
    masks = [(*hit.span(), b"") for hit in _ANY_MASK.finditer(data)]
    joined: list[tuple[int, int, bytes]] = []
    for start, end, mask in sorted((*stretches, *masks)):
        if joined and start < joined[-1][1]:
            first, last, before = joined[-1]
            joined[-1] = (first, max(last, end), before or mask)
        elif start < end:
            joined.append((start, end, mask))
    return ((start, end, mask) for start, end, mask in joined if mask and _hides(data[start:end]))


def _hides(text: bytes) -> bool:
    return bool(_ANY_MASK.sub(b"", text).strip())
