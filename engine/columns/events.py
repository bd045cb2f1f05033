"""events: records cut at the headers into events, with their times; which of them only the reference can judge."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.layouts import NONE, Layouts, Recogniser
from engine.columns.lines import Flags, Integers, strings
from engine.columns.records import Rows
from engine.columns.stamps import NO_TIME, StampReader, masked
from engine.model.records import TIMEZONE_LABEL
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES
from engine.parse.stamps import bounds_of
from engine.parse.times import zone_of

UNDATED = NO_TIME + 1  # it bears no stamp


class Events(Struct, frozen=True):
    """The events of some rows, all of one source together and in order; event i begins at row `heads[i]` and ends before
    `ends[i]`.

    `alike` is the text of each with its line ends, every digit a 0. `asked` are those for the reference.
    """

    rows: Rows
    heads: Integers
    ends: Integers
    layouts: Layouts
    at_us: Integers
    alike: pa.StringArray
    asked: Flags

    def __len__(self) -> int:
        return len(self.heads)


def events_of(rows: Rows, recogniser: Recogniser, layouts: Layouts) -> Events:
    """Return the events of `rows`; what stands before the first header of a source is in none."""
    begins = (layouts != NONE) & ~rows.odd
    heads = np.flatnonzero(begins)
    borders = np.flatnonzero(np.diff(rows.source, prepend=-1) != 0)  # the first row of each source
    following = np.append(heads[1:], len(rows))
    next_source = np.append(borders[1:], len(rows))
    ends = np.minimum(following, next_source[np.searchsorted(borders, heads, side="right") - 1])
    head_layouts = layouts[heads]
    at_us = _times(rows, recogniser, heads, head_layouts)
    starts = np.append(rows.starts[heads], rows.starts[ends[-1]] if len(heads) else 0)
    asked = at_us == NO_TIME
    asked |= (ends - heads > BLOCK_LINES) | (rows.starts[ends] - rows.starts[heads] > BLOCK_BYTES)
    owners = np.searchsorted(heads, np.flatnonzero(rows.odd), side="right") - 1
    asked[owners[owners >= 0]] = True
    return Events(rows, heads, ends, head_layouts, at_us, _alike(rows, recogniser, heads, ends, head_layouts, starts), asked)


def _alike(
    rows: Rows, recogniser: Recogniser, heads: Integers, ends: Integers, layouts: Layouts, starts: Integers
) -> pa.StringArray:
    data = masked(rows.data)
    telling = np.isin(layouts, recogniser.telling)
    if telling.any():  # their levels are digits, which have to stay
        kept = bytearray(data)
        for row in heads[telling].tolist():
            begin, end = int(rows.starts[row]), int(rows.starts[row + 1])
            span = recogniser.level_span(rows.data[begin : end - 1])
            kept[begin + span[0] : begin + span[1]] = rows.data[begin + span[0] : begin + span[1]]
        data = bytes(kept)
    if len(heads) and (ends[:-1] == heads[1:]).all():
        return strings(data, starts)
    bounds = np.empty(2 * len(heads) + 1, np.int64)  # of events and what lies between sources
    bounds[:-1:2], bounds[1::2], bounds[-1] = rows.starts[heads], rows.starts[ends], len(data)
    return strings(data, bounds).take(pa.array(np.arange(len(heads)) * 2))


def _times(rows: Rows, recogniser: Recogniser, heads: Integers, layouts: Layouts) -> Integers:
    """Return the time of each event by its header."""
    at_us = np.full(len(heads), UNDATED, np.int64)
    for number in np.unique(layouts).tolist():
        head = recogniser.head(number)
        if not head:
            continue
        some = np.flatnonzero(layouts == number)
        first_lines = rows.texts.take(pa.array(heads[some]))
        stamps = pc.struct_field(pc.extract_regex(first_lines, head), "time")
        at_us[some] = _read(rows, heads[some], stamps, recogniser.formats[number].time)
    return at_us


def _read(rows: Rows, heads: Integers, stamps: pa.StringArray, layout: str) -> Integers:
    """Return the times of stamps in one layout, of lines that were taken at different times and bear different labels."""
    at_us = np.full(len(heads), NO_TIME, np.int64)
    chunks = np.searchsorted(rows.lines.firsts, rows.lines.placed[rows.line[heads]], side="right") - 1
    groups: dict[tuple[datetime | None, int], list[int]] = {}
    taken = [chunk.ingested_at for chunk in rows.lines.chunks]
    labelled = rows.labelled[heads]
    for chunk in np.unique(chunks).tolist():
        for label in np.unique(labelled).tolist():
            groups.setdefault((taken[chunk], label), []).append(chunk)
    for (when, label), some in groups.items():
        picked = np.flatnonzero(np.isin(chunks, some) & (labelled == label))
        labels = rows.labels[label]
        reader = StampReader(layout, zone_of(labels.get(TIMEZONE_LABEL, "")), bounds_of(labels), when)
        part = stamps if len(picked) == len(heads) else stamps.take(pa.array(picked))
        at_us[picked] = reader.read(part)
    at_us[pc.binary_length(stamps).to_numpy(zero_copy_only=False) == 0] = UNDATED
    return at_us
