"""Documents alike: JSON that a program writes a line, equal but for digits in its strings, says the same but for its stamp.

Of documents alike a few are unwrapped; then one is unwrapped with other digits in it, which shows where its stamp stands and
that nothing else about it hangs on them. From then on only the stamp is read. Digits outside of strings may be a level: they
count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from engine.match.digits import ALIKE, decide
from engine.model.records import RawLine, Record
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.times import parse_stamp, zone_of

LEARNT_AFTER = 3  # documents alike
LONGEST = 2048  # bytes of a document
KEPT = 4096  # documents that are known, and that are counted

_STAMP = re.compile(rb'"((20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?)"')
_DIGITS = re.compile(rb"[0-9]+")
_STAMPS = (b"20110112031425678123456", b"20281123194306152987654")
_FILLED = (b"1", b"7", b"9")

_Places = Sequence[tuple[int, int]]
_Key = tuple[bytes, ...]  # the text with all digits alike, and the digits outside of strings
_Some = TypeVar("_Some")
_Other = TypeVar("_Other")


class _Known(Struct, frozen=True):
    """The record of one of several documents alike; from where to where in them the stamp stands; and the text, if its words
    count."""

    like: Record
    stamp: slice
    text: slice | None


class Documents:
    """What is known of documents.

    Args:
        stamped: returns the time of the event that is certain to begin with a record, and to end with it.
        wordy: tells whether something in the text of a record is known by its words.
    """

    def __init__(
        self, formats: Sequence[Format], stamped: Callable[[Record], datetime | None], wordy: Callable[[Record], bool]
    ) -> None:
        self._formats, self._stamped, self._wordy = formats, stamped, wordy
        self._numbers: dict[bytes, _Places] = {}
        self._known: dict[_Key, _Known | None] = {}
        self._counts: dict[_Key, int] = {}

    def like(self, raw: RawLine) -> Record | None:
        """Return a record like that of a line, but for digits in its labels and, where no words count, its text; an event for
        sure. None when the line has to be read."""
        value = raw.value
        if not value.startswith(b'{"') or len(value) > LONGEST or b"\\" in value:
            return None
        alike = value.translate(ALIKE)
        numbers = self._numbers.get(alike)
        if numbers is None:
            numbers = _put(self._numbers, alike, _outside(value))
        key = (alike, *(value[start:end] for start, end in numbers))
        known = self._known.get(key)
        if known is None:
            if key not in self._known:
                self._count(key, raw)
            return None
        at = _time(known, raw)
        if at is None:
            return None
        text = known.like.text if known.text is None else value[known.text].decode()
        return Record(raw.source_id, raw.offset, text, raw.number, True, at, raw.ingested_at, raw.labels, known.like.fields)

    def _count(self, key: _Key, raw: RawLine) -> None:
        count = self._counts.get(key, 0) + 1
        if count < LEARNT_AFTER:
            _put(self._counts, key, count)
        else:
            _put(self._known, key, self._learnt(raw, self._numbers[key[0]]))

    def _learnt(self, raw: RawLine, numbers: _Places) -> _Known | None:
        record = unwrap_line(raw, self._formats)
        if not self._is_event(record, raw) or self._digits_matter(record.text):
            return None
        text = _place(record.text, raw.value)
        if text is None:
            return None
        others = list(_variants(raw, numbers))
        for found in _STAMP.finditer(raw.value):
            known = _Known(record, slice(*found.span(1)), text if self._wordy(record) else None)
            if all(self._is_like(known, other) for other in (raw, *others)):
                return known
        return None

    def _is_event(self, record: Record, raw: RawLine) -> bool:
        whole = record.starts and not record.partial and not record.cut and record.source_id == raw.source_id
        return whole and bool(record.fields) and self._stamped(record) is not None

    def _is_like(self, known: _Known, raw: RawLine) -> bool:
        record, like = unwrap_line(raw, self._formats), known.like
        if record.at != _time(known, raw) or record.fields.get("level") != like.fields.get("level"):
            return False
        there = known.text is None or raw.value[known.text] == record.text.encode()
        return there and _alike(record.text) == _alike(like.text) and self._is_event(record, raw)

    def _digits_matter(self, text: str) -> bool:
        """Tell whether with other digits a text might be a header, or bear a wrapper of its own."""
        return text[:1].isdigit() or text.startswith("<") or decide((each.header for each in self._formats), _alike(text))


def _time(known: _Known, raw: RawLine) -> datetime | None:
    return parse_stamp(raw.value[known.stamp].decode("ascii"), "iso", zone_of(raw.labels.get("timezone", "")))


def _place(text: str, value: bytes) -> slice | None:
    """Return where a text is the beginning of a string; None when that is not certain, so that it may be a part of one."""
    sought = f'"{text}'.encode()
    at = value.find(sought) + 1 if value.count(sought) == 1 else 0
    return slice(at, at + len(sought) - 1) if at else None


def _outside(value: bytes) -> _Places:
    """Return where digits stand outside of the strings of a document without any escapes."""
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
        yield replace(raw, value=bytes(text))


def _alike(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(ALIKE)


def _put(known: dict[_Some, _Other], key: _Some, value: _Other) -> _Other:
    if len(known) >= KEPT:
        known.clear()
    known[key] = value
    return value
