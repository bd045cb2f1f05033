"""Redaction of secrets in evidence and captures, right after matching: what is cut here is never stored or sent.

Finders (`engine/match/masking`) say which stretches are secret; each becomes a visible mask. Topics, offsets, hosts and
principals stay: they are what a diagnosis is made of.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

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
MOST_PASSES = 8  # one finds all, a second sees that; what goes on longer was written to do so

_ORDINARY = Redaction()
_Finder = Callable[[bytes], Iterable[tuple[int, int]]]
_MASKS = tuple(mask.encode() for mask in (MASK, MAIL_MASK, CARD_MASK, NATIONAL_ID_MASK, PHONE_MASK))
_ANY_MASK = expression(r"\[(?:redacted|e-mail|card|national-id|phone)\]")
_COLOURS = expression(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# what is not seen but splits a word: soft hyphen, joiners, zero-width blanks, marks of direction, variation selectors
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
    """Replaces secrets by visible masks. Doing it twice changes nothing more."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._patterns = tuple(expression(pattern) for pattern in redaction.patterns)
        self._hints = (HINT, *((PHONE_HINT,) if redaction.phone else ()), *map(_hint, redaction.patterns))

    def __call__(self, text: str) -> str:
        """Return `text`, of any number of lines, without its secrets; the same object when there is none."""
        data = encoded(_plain(text))
        if not any(hint.search(data) for hint in self._hints):
            return text
        for passes in range(MOST_PASSES):
            masked = _masked(data, self._stretches(data))
            if masked is data:
                return text if passes == 0 else data.decode("utf-8", "replace")
            data = masked
        return MASK

    def may_hold(self, text: str) -> bool:
        """Tell whether `text`, or one with other digits, may hold a secret."""
        data = encoded(_plain(text))
        return any(hint.search(data) for hint in self._hints)

    def part(self, part: str, text: str, redacted: str) -> str:
        """Return a part of `text`, redacted as all of it was: it may have lost the name that gives a secret away."""
        if text is redacted:
            return part
        masked = self(part)
        return MASK if part in text and part not in redacted and masked == part else masked

    def captures(self, captures: Mapping[str, Value], text: str, redacted: str) -> Mapping[str, Value]:
        """Return what was captured of `text` without what redaction took out of it."""
        if text is redacted:
            return captures
        return {name: self._capture(value, text, redacted) for name, value in captures.items()}

    def labels(self, labels: Labels) -> Labels:
        """Return labels without secrets; the same object when there is none."""
        if not any(map(self.may_hold, labels.values())):
            return labels
        return {name: self(value) for name, value in labels.items()}

    def _capture(self, value: Value, text: str, redacted: str) -> Value:
        part = str(value)
        clean = self.part(part, text, redacted)
        return value if clean == part else clean

    def _stretches(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        hinted: dict[re2._Regexp, bool] = {}
        for hint, find, mask in _finders(self._redaction.email, self._redaction.phone):
            if hint not in hinted:
                hinted[hint] = hint.search(data) is not None
            if hinted[hint]:
                yield from ((start, end, mask) for start, end in find(data))
        for pattern in self._patterns:
            for hit in pattern.finditer(data):
                groups = range(1, len(hit.groups()) + 1) or (0,)
                yield from ((*hit.span(group), _MASKS[0]) for group in groups if hit.group(group))


@cache
def redactor_of(redaction: Redaction) -> Redactor:
    """Return what redacts as `redaction` says, compiled once."""
    return Redactor(redaction)


def redact(text: str) -> str:
    """Return `text` without its secrets, as a configuration has it that says nothing of `redact`."""
    return redactor_of(_ORDINARY)(text)


def cut(text: str) -> str:
    """Return the longest beginning of `text` that fits EVIDENCE_BYTES of UTF-8, ending at a character border."""
    if len(text) * 4 <= EVIDENCE_BYTES:
        return text
    data = encoded(text)
    return text if len(data) <= EVIDENCE_BYTES else data[:EVIDENCE_BYTES].decode("utf-8", "ignore")


@cache
def _finders(email: bool, phone: bool) -> tuple[tuple[re2._Regexp, _Finder, bytes], ...]:
    """Return hints, the finders that find nothing without them, and their masks.

    They are compiled when a text may hold a secret first: most logs hold none.
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
    listed = [(hint_of(group), finder, mask) for group, finders in groups.items() for finder, mask in finders]
    return (*listed, *(((PHONE_HINT, personal.phones, telephone),) if phone else ()))


def _hint(pattern: str) -> re2._Regexp:
    """Return an expression that is found wherever `pattern` is, whatever the digits are."""
    wide = widened(pattern)
    return expression("" if wide is None else wide)


def _plain(text: str) -> str:
    """Return `text` as it is read: without what nobody sees, and full-width letters as others."""
    if "\x1b" in text:
        text = str(_COLOURS.sub("", text))
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_INVISIBLE))


def _masked(data: bytes, stretches: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return `data` with a mask for each stretch, one for those that overlap; the same object when nothing is hidden."""
    made: list[bytes] = []
    at = 0
    for start, end, mask in _joined(data, stretches):
        made += (data[at:start], mask)
        at = end
    return b"".join((*made, data[at:])) if made else data


def _joined(data: bytes, stretches: Iterable[tuple[int, int, bytes]]) -> Iterator[tuple[int, int, bytes]]:
    """Yield stretches in order, those that overlap as one; none that hides only what is hidden, or half of a mask."""
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
