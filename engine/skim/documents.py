"""Documents alike: JSON that a program writes a line, equal but for digits in its strings, says the same but for its stamp.

Of documents alike a few are unwrapped; then one is unwrapped with other digits in it, which shows where its stamp stands and
that nothing else about it hangs on them. From then on only the stamp is read. Digits outside of strings may be a level: they
count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from engine.match.digits import ALIKE
from engine.model.records import RawLine, Record
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.times import parse_stamp, zone_of
from engine.skim.layouts import NO_TIME, stamped_us, to_us
from engine.skim.lines import Flags, Lines, Numbers, searched
from engine.skim.screen import decide

LEARNT_AFTER = 3  # documents alike
LONGEST = 2048  # bytes of a document
KEPT = 4096  # documents that are known, and that are counted

_STAMP = re.compile(rb'"((20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?)"')
_ZONED = re.compile(rb"(?:Z|[+-]00:?00)$")
_DIGITS = re.compile(rb"[0-9]+")
_ESCAPED = re.compile(rb"\\(?![nt])")  # what is no line end and no tab: a quote, or digits that stand for a character
_STAMPS = (b"20110112031425678123456", b"20281123194306152987654")
_FILLED = (b"1", b"7", b"9")

_Places = Sequence[tuple[int, int]]
_Key = bytes | tuple[bytes, ...]  # the text with all digits alike; and the digits outside of strings, if there are any
_Some = TypeVar("_Some")
_Other = TypeVar("_Other")


class _Kind(Struct, frozen=True):
    """What several documents alike are: the record of one; from where to where in them the stamp stands, and how it looks; and
    the parts of the text, if its words count. `searched` is what is searched of each if they do not, else what stands above the
    text."""

    like: Record
    stamp: slice
    shape: bytes
    parts: Sequence[slice]
    searched: bytes

    def said(self, value: bytes) -> bytes:
        """Return what is searched of a document."""
        return self.searched + self.text(value).encode("ascii", "replace") + b"\n" if self.parts else self.searched

    def text(self, value: bytes) -> str:
        """Return the text of a document, if its words count."""
        return b"\n".join([value[part] for part in self.parts]).replace(b"\\n", b"\n").replace(b"\\t", b"\t").decode()


class Documents(Struct, frozen=True):
    """Lines side by side, of which some are documents like others that were read: the kind of each, None where there is none.

    `searched` is what is searched of each that is of a kind, and `at_us` its time in microseconds since 1970.
    """

    kinds: Sequence[_Kind | None]
    searched: Sequence[bytes]
    at_us: Numbers

    def some(self, numbers: Sequence[int]) -> Documents:
        """Return some of the lines."""
        if len(numbers) == len(self.kinds):
            return self
        said = [self.searched[number] for number in numbers]
        return Documents([self.kinds[number] for number in numbers], said, self.at_us[numbers])

    def without(self, doubted: Callable[[Numbers], Flags]) -> Documents:
        """Return the lines with those of no kind whose times are doubted."""
        doubts = np.flatnonzero(doubted(self.at_us)).tolist()
        if not doubts:
            return self
        kinds, searched, at_us = list(self.kinds), list(self.searched), self.at_us.copy()
        for number in doubts:
            kinds[number], searched[number], at_us[number] = None, b"", NO_TIME
        return Documents(kinds, searched, at_us)


class Kinds:
    """The kinds of documents that are known.

    Args:
        stamped: returns the time of the event that is certain to begin with a record, and to end with it.
        wordy: tells whether something in the text of a record is known by its words.
    """

    def __init__(
        self, formats: Sequence[Format], stamped: Callable[[Record], datetime | None], wordy: Callable[[Record], bool]
    ) -> None:
        self._formats, self._stamped, self._wordy = formats, stamped, wordy
        self._numbers: dict[bytes, _Places] = {}
        self._known: dict[_Key, _Kind | None] = {}
        self._counts: dict[_Key, int] = {}

    def among(self, lines: Lines, some: range, raw: Callable[[int], RawLine], zone: tzinfo | None) -> Documents:
        """Return which of some lines are like others, each an event for sure; the others have to be read.

        Args:
            raw: returns a line by number.
            zone: of stamps without an offset; None when the lines have several.
        """
        data = lines.data(some.start, some.stop)
        values = data.split(b"\n")
        alikes = data.translate(ALIKE).split(b"\n")[: len(some)]
        kinds = list(map(self._known.get, alikes))
        for at in [at for at, kind in enumerate(kinds) if kind is None]:
            kinds[at] = self._kind(values[at], alikes[at], some[at], raw)
        at_us = _times(lines, some, kinds, zone)
        for at in np.flatnonzero(at_us == NO_TIME).tolist():
            kinds[at] = None
        said = [b"" if kind is None else kind.said(value) for kind, value in zip(kinds, values, strict=False)]
        return Documents(kinds, said, at_us)

    def _kind(self, value: bytes, alike: bytes, number: int, raw: Callable[[int], RawLine]) -> _Kind | None:
        numbers = self._numbers.get(alike)
        if numbers is None:
            if not value.startswith(b'{"') or len(value) > LONGEST or _ESCAPED.search(value):
                return None
            numbers = _put(self._numbers, alike, _outside(value))
        key: _Key = (alike, *(value[start:end] for start, end in numbers)) if numbers else alike
        known = self._known.get(key)
        if known is None and key not in self._known:
            self._count(key, raw(number), numbers)
        return known

    def _count(self, key: _Key, raw: RawLine, numbers: _Places) -> None:
        count = self._counts.get(key, 0) + 1
        if count < LEARNT_AFTER:
            _put(self._counts, key, count)
        else:
            _put(self._known, key, self._learnt(raw, numbers))

    def _learnt(self, raw: RawLine, numbers: _Places) -> _Kind | None:
        record = unwrap_line(raw, self._formats)
        if not self._is_event(record, raw) or self._digits_matter(record.text):
            return None
        wordy, others, said = self._wordy(record), list(_variants(raw, numbers)), searched(record)
        parts = _parts(record.text, raw.value) if wordy else ()
        if wordy and not parts:
            return None
        if parts:
            said = said[: -len(record.text) - 1]
        for found in _STAMP.finditer(raw.value):
            kind = _Kind(record, slice(*found.span(1)), found[1].translate(ALIKE), parts, said)
            if all(self._is_like(kind, other) for other in (raw, *others)):
                return kind
        return None

    def _is_event(self, record: Record, raw: RawLine) -> bool:
        whole = not (record.partial or record.cut or record.misdated) and record.source_id == raw.source_id
        return whole and record.starts and bool(record.fields) and self._stamped(record) is not None

    def _is_like(self, kind: _Kind, raw: RawLine) -> bool:
        record, like = unwrap_line(raw, self._formats), kind.like
        stamp = raw.value[kind.stamp].decode("ascii")
        if record.at != parse_stamp(stamp, "iso", zone_of(raw.labels.get("timezone", ""))):
            return False
        if record.fields.get("level") != like.fields.get("level"):
            return False
        there = not kind.parts or kind.text(raw.value) == record.text
        return there and _alike(record.text) == _alike(like.text) and self._is_event(record, raw)

    def _digits_matter(self, text: str) -> bool:
        """Tell whether with other digits a text might be a header, or bear a wrapper of its own."""
        return text[:1].isdigit() or text.startswith("<") or decide((each.header for each in self._formats), _alike(text))


def _times(lines: Lines, some: range, kinds: Sequence[_Kind | None], zone: tzinfo | None) -> Numbers:
    """Return the time of each line that is of a kind; NO_TIME where its stamp is none, and where it is of no kind."""
    found = np.full(len(some), NO_TIME)
    for shape in {kind.shape for kind in kinds if kind is not None}:
        stamped = [(number, kind.stamp.start) for number, kind in enumerate(kinds) if kind is not None and kind.shape == shape]
        numbers, begins = np.array(stamped, np.int64).T
        places = lines.starts[some.start : some.stop][numbers] + begins
        if _ZONED.search(shape) or zone is UTC:
            found[numbers] = stamped_us(lines, places, shape)
        elif zone is not None:
            stamps = (lines.text[at : at + len(shape)].decode("ascii") for at in places.tolist())
            found[numbers] = [to_us(parse_stamp(stamp, "iso", zone)) for stamp in stamps]
    return found


def _parts(text: str, value: bytes) -> Sequence[slice]:
    """Return where a text is the beginning of a string, or its first line and the rest each are; none when that is not certain,
    so that it may be a part of one."""
    for parts in ([text], text.split("\n", 1)):
        sought = [b'"' + part.encode().replace(b"\n", b"\\n").replace(b"\t", b"\\t") for part in parts]
        if all(value.count(each) == 1 for each in sought):
            begins = [value.find(each) for each in sought]
            return [slice(at + 1, at + len(each)) for at, each in zip(begins, sought, strict=True)]
    return ()


def _outside(value: bytes) -> _Places:
    """Return where digits stand outside of the strings of a document in which no quote is escaped."""
    places, at = [], 0
    for number, part in enumerate(value.split(b'"')):
        if number % 2 == 0:
            places += [(at + found.start(), at + found.end()) for found in _DIGITS.finditer(part)]
        at += len(part) + 1
    return places


def _variants(raw: RawLine, numbers: _Places) -> Iterator[RawLine]:
    """Yield the document with other digits in its strings; each of its stamps is another, and there is such a time."""
    outside = {at for start, end in numbers for at in range(start, end)}
    for number, filled in enumerate(_FILLED):
        text = bytearray(raw.value)
        for found in _DIGITS.finditer(raw.value):
            for at in range(*found.span()):
                text[at] = text[at] if at in outside else filled[0]
        for nth, found in enumerate(_STAMP.finditer(raw.value)):
            places = [at for at in range(*found.span(2)) if raw.value[at : at + 1].isdigit()]
            for at, digit in zip(places, _STAMPS[(number + nth) % len(_STAMPS)], strict=False):
                text[at] = digit
            text[found.end(2) : found.end()] = raw.value[found.end(2) : found.end()]
        yield replace(raw, value=bytes(text), ingested_at=None)


def _alike(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(ALIKE)


def _put(known: dict[_Some, _Other], key: _Some, value: _Other) -> _Other:
    if len(known) >= KEPT:
        known.clear()
    known[key] = value
    return value
