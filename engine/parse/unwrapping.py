"""unwrap: raw lines in, records out. Removes what containers, viewers, shippers and JSON put around a line. Pure, one line at a
time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from engine.model.records import Progress, RawLine, Record, Tick
from engine.model.rules import Format
from engine.parse.headers import HeaderBook, header_book
from engine.parse.lines import clean, decode_line, plain
from engine.parse.wrappers import by_first_character
from engine.quarantine import Quarantine, attempt

NESTING = 6  # most wrappers around one line; Compose around docker's JSON around a program's JSON is three


def unwrap(
    input: Iterable[RawLine | Progress | Tick], formats: Sequence[Format], quarantine: Quarantine | None = None
) -> Iterator[Record | Progress | Tick]:
    """Yield one record a line, in order; progress and ticks pass through unchanged. A line that raises goes into `quarantine`;
    without one the error is raised."""
    book = header_book(formats)
    for item in input:
        if not isinstance(item, RawLine):
            yield item
        elif (record := attempt(quarantine, "unwrap", item, _unwrapped, item, book)) is not None:
            yield record


def unwrap_line(raw: RawLine, formats: Sequence[Format]) -> Record:
    """Return the record of one line. Whatever cannot be read as a wrapper is text, so no line makes it raise.

    A line that begins with the header of a specific format of `formats` has no wrapper, whatever it looks like.
    """
    return _unwrapped(raw, header_book(formats))


def _unwrapped(raw: RawLine, book: HeaderBook) -> Record:
    text, cut = decode_line(raw.value)
    record = Record(
        raw.source_id,
        raw.offset,
        plain(text),
        raw.number,
        ingested_at=raw.ingested_at,
        labels=raw.labels,
        cut=cut,
        origin=raw.origin,
    )
    for _ in range(NESTING):
        inner = _outermost_off(record, book)
        if inner is None:
            break
        record = inner
    return record


def _outermost_off(record: Record, book: HeaderBook) -> Record | None:
    """Return `record` without its outermost wrapper; None when it has none."""
    for unwrap_one in by_first_character().get(record.text[:1], ()):
        inner = unwrap_one(record)
        if inner is not None:
            return None if book.knows(record.text) else _cleaned(inner)
    return None


def _cleaned(record: Record) -> Record:
    text = clean(record.text)
    return record if text is record.text else replace(record, text=text)
