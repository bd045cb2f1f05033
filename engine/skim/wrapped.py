"""Events of records, which are lines with their wrappers off: a wrapper's word or the inner layout makes a header certain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec import Struct

from engine.model.records import Record
from engine.parse.stamps import stamp_of
from engine.skim.blocks import Blocks
from engine.skim.documents import Documents
from engine.skim.layouts import NO_TIME, Layout, surely_continues, to_us
from engine.skim.lines import BEGINNING, Bytes, Lines, Numbers, searched
from engine.skim.plain import doubtful, layout_in
from engine.skim.sight import Sight

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Read(Struct, frozen=True):
    """Those of some lines that were read: their numbers, what they are, and how each begins as it is searched."""

    numbers: Numbers
    records: Sequence[Record]
    rows: Bytes


def record_blocks(records: Sequence[Record | None], documents: Documents, sight: Sight) -> Blocks | None:
    """Return the events of lines of one source, in order, each a line of the text; None when none are certain.

    Args:
        records: what each is with its wrappers off; None for those of `documents` that are of a kind, an event each.
    """
    lines = _searched(records, documents)
    read = _read(records, lines)
    layout = layout_in(lines, sight) if any(not record.fields for record in read.records) else None
    at_us = documents.at_us.copy()
    at_us[read.numbers] = [to_us(at) for at in _times(read, layout, sight)]
    parts = [int(number) + 1 for number, record in zip(read.numbers, read.records, strict=True) if record.partial]
    at_us[[number for number in parts if number < len(lines)]] = NO_TIME
    heads = np.flatnonzero(at_us != NO_TIME)
    if len(heads) < 2:
        return None
    strange = doubtful(layout, lines, heads) if layout is not None else np.zeros(len(heads), np.bool_)
    owners = np.searchsorted(heads, _odd(read, at_us, documents, sight), side="right") - 1
    strange[owners[owners >= 0]] = True
    return Blocks(lines, heads, at_us[heads], strange, lambda block: _EPOCH + timedelta(microseconds=int(at_us[heads[block]])))


def _searched(records: Sequence[Record | None], documents: Documents) -> Lines:
    parts = [said if record is None else searched(record) for record, said in zip(records, documents.searched, strict=True)]
    return Lines(b"".join(parts), np.cumsum([0, *map(len, parts)], dtype=np.int64)[:-1])


def _read(records: Sequence[Record | None], lines: Lines) -> _Read:
    some = [(number, record) for number, record in enumerate(records) if record is not None]
    numbers = np.array([number for number, _ in some], np.int64)
    return _Read(numbers, [record for _, record in some], lines.windows(lines.starts[numbers], BEGINNING))


def _times(read: _Read, layout: Layout | None, sight: Sight) -> list[datetime | None]:
    """Return for each record the time of the event that is certain to begin with it, None when none is."""
    fits = layout.fits(read.rows).tolist() if layout is not None else [False] * len(read.records)
    return [
        _printed(record, layout) if fit and layout is not None and _one_header(record) else sight.stamped(record)
        for record, fit in zip(read.records, fits, strict=True)
    ]


def _one_header(record: Record) -> bool:
    """Tell whether the header of a record in a layout is that of its first line, for the assembler as for the decoder."""
    return not record.fields and not record.partial and (record.starts or "\n" not in record.text)


def _printed(record: Record, layout: Layout) -> datetime | None:
    stamp = record.text[layout.opened : layout.opened + layout.width]
    return stamp_of(record, stamp, "iso")[0]


def _odd(read: _Read, at_us: Numbers, documents: Documents, sight: Sight) -> Numbers:
    """Return the lines that may be anything but the continuation of an event, of those that surely begin none."""
    sure = surely_continues(read.rows)
    begin = (at_us[read.numbers] != NO_TIME).tolist()
    odd = [
        number
        for number, record, begins, continues in zip(read.numbers.tolist(), read.records, begin, sure.tolist(), strict=True)
        if not begins and not _continues(record, continues, sight)
    ]
    torn = np.flatnonzero((at_us == NO_TIME) & (documents.at_us != NO_TIME))
    return np.concatenate((np.array(odd, np.int64), torn))


def _continues(record: Record, sure: bool, sight: Sight) -> bool:
    if record.starts or record.partial or "\n" in record.text:
        return False
    return sure or sight.is_headless(record.text)
