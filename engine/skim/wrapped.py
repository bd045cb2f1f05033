"""Events of records, which are lines with their wrappers off: a wrapper's word or the inner layout makes a header certain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np

from engine.model.records import Record
from engine.parse.times import parse_stamp, zone_of
from engine.skim.blocks import Blocks
from engine.skim.layouts import Layout, surely_continues
from engine.skim.lines import Bytes, searched
from engine.skim.plain import doubtful, layout_in
from engine.skim.sight import Sight


def record_blocks(records: Sequence[Record], sure: Sequence[bool], sight: Sight) -> Blocks | None:
    """Return the events of `records`, of one source and in order, each a line of the text; None when none are certain.

    Args:
        sure: which of them are one event each, as their wrappers say.
    """
    lines = searched(records)
    rows = lines.beginnings()
    layout = layout_in(lines, sight)
    times = list(_times(records, sure, rows, layout, sight))
    heads = np.array([number for number, at in enumerate(times) if at is not None], np.int64)
    if len(heads) < 2:
        return None
    known = [at for at in times if at is not None]
    at_us = np.array([round(at.timestamp() * 1_000_000) for at in known], np.int64)
    strange = doubtful(layout, lines, heads) if layout is not None else np.zeros(len(heads), np.bool_)
    owners = np.searchsorted(heads, np.array(_odd(records, times, rows, sight), np.int64), side="right") - 1
    strange[owners[owners >= 0]] = True
    return Blocks(lines, heads, at_us, strange, known.__getitem__)


def _times(
    records: Sequence[Record], sure: Sequence[bool], rows: Bytes, layout: Layout | None, sight: Sight
) -> Iterator[datetime | None]:
    """Yield for each record the time of the event that is certain to begin with it, None when none is."""
    fits = layout.fits(rows).tolist() if layout is not None else [False] * len(records)
    goes_on = False
    for record, known, fit in zip(records, sure, fits, strict=True):
        if goes_on or record.partial:
            yield None
        elif known:
            yield record.at
        elif fit and layout is not None and not record.fields and _one_header(record):
            yield _printed(record, layout)
        else:
            yield sight.stamped(record)
        goes_on = record.partial


def _one_header(record: Record) -> bool:
    """Tell whether the header of a record in a layout is that of its first line, for the assembler as for the decoder."""
    return record.starts or "\n" not in record.text


def _printed(record: Record, layout: Layout) -> datetime | None:
    stamp = record.text[layout.opened : layout.opened + layout.width]
    return parse_stamp(stamp, "iso", zone_of(record.labels.get("timezone", "")))


def _odd(records: Sequence[Record], times: Sequence[datetime | None], rows: Bytes, sight: Sight) -> list[int]:
    """Return the records that may be anything but the continuation of an event, of those that surely begin none."""
    sure = surely_continues(rows).tolist()
    return [
        number
        for number, (record, at) in enumerate(zip(records, times, strict=True))
        if at is None and not _continues(record, sure[number], sight)
    ]


def _continues(record: Record, sure: bool, sight: Sight) -> bool:
    if record.starts or record.partial or "\n" in record.text:
        return False
    return sure or sight.is_headless(record.text)
