"""events: records cut at the headers into events, with their times; which of them only the reference can judge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from engine.columns.layouts import NONE, Layouts, Recogniser, matching
from engine.columns.lines import NO_TIME, UNDATED, Flags, Integers, index_of, numbers_of, strings
from engine.columns.records import RecordRows
from engine.columns.stamps import masked, read_stamps
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES


class Events(Struct, frozen=True):
    """The events of some rows, all of one source together and in order; event i begins at row `heads[i]` and ends before
    `ends[i]`.

    The layout of one whose wrapper said that it is a whole event is the number of layouts. `alike` is the text of each with its
    line ends, every digit a 0. `by_header` are those whose time is that of the header, not of a wrapper. `asked` are those for
    the reference.
    """

    rows: RecordRows
    heads: Integers
    ends: Integers
    layouts: Layouts
    at_us: Integers
    by_header: Flags
    alike: pa.StringArray
    asked: Flags

    def __len__(self) -> int:
        return len(self.heads)

    def source_id(self, event: int) -> str:
        """Return the source of an event."""
        return self.rows.sources[int(self.rows.source[int(self.heads[event])])]


def events_of(rows: RecordRows, recogniser: Recogniser, layouts: Layouts) -> Events:
    """Return the events of `rows`; what stands before the first header of a source is in none."""
    whole = rows.fields != 0
    begins = ((layouts != NONE) | whole) & ~rows.odd
    heads = np.flatnonzero(begins)
    borders = np.flatnonzero(np.diff(rows.source, prepend=-1) != 0)  # the first row of each source
    following = np.append(heads[1:], len(rows))
    next_source = np.append(borders[1:], len(rows))
    ends = np.minimum(following, next_source[np.searchsorted(borders, heads, side="right") - 1])
    head_layouts = np.where(whole[heads], len(recogniser.formats), layouts[heads]).astype(np.int16)
    at_us = _times(rows, recogniser, heads, head_layouts)
    wrapped = rows.at_us[heads]
    by_header = at_us > UNDATED
    at_us = np.where((at_us <= UNDATED) & (at_us != NO_TIME) & ((wrapped > UNDATED) | (at_us == UNDATED)), wrapped, at_us)
    starts = np.append(rows.starts[heads], rows.starts[ends[-1]] if len(heads) else 0)
    asked = at_us == NO_TIME
    asked |= np.isin(head_layouts, recogniser.labelling)
    asked |= (ends - heads > BLOCK_LINES) | (rows.starts[ends] - rows.starts[heads] > BLOCK_BYTES)
    owners = np.searchsorted(heads, np.flatnonzero(rows.odd), side="right") - 1
    asked[owners[owners >= 0]] = True
    asked |= _ends_in_header(rows, recogniser, heads, head_layouts)
    alike = _alike(rows, recogniser, heads, ends, head_layouts, starts)
    return Events(rows, heads, ends, head_layouts, at_us, by_header, alike, asked)


def _ends_in_header(rows: RecordRows, recogniser: Recogniser, heads: Integers, layouts: Layouts) -> Flags:
    """Return the events whose first line is no header without the blanks at its end; the text of an event ends without them."""
    first_lines = rows.texts.take(index_of(heads))
    asked = matching(first_lines, r"[ \t]$") & (layouts < len(recogniser.formats))
    blank = np.flatnonzero(asked)
    if len(blank):
        trimmed = recogniser.layouts(pc.ascii_rtrim_whitespace(first_lines.take(index_of(blank))))
        asked[blank] = trimmed != layouts[blank]
    return asked


def _alike(
    rows: RecordRows, recogniser: Recogniser, heads: Integers, ends: Integers, layouts: Layouts, starts: Integers
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
    return strings(data, bounds).take(index_of(np.arange(len(heads)) * 2))


def _times(rows: RecordRows, recogniser: Recogniser, heads: Integers, layouts: Layouts) -> Integers:
    """Return the time of each event by its header."""
    at_us = np.full(len(heads), UNDATED, np.int64)
    for number in np.unique(layouts).tolist():
        head = recogniser.head(number) if number < len(recogniser.formats) else ""
        if not head:
            continue
        some = np.flatnonzero(layouts == number)
        first_lines = rows.texts.take(index_of(heads[some]))
        stamps = pc.struct_field(pc.extract_regex(first_lines, head), "time")
        at_us[some] = _read(rows, heads[some], stamps, recogniser.formats[number].time)
    return at_us


def _read(rows: RecordRows, heads: Integers, stamps: pa.StringArray, layout: str) -> Integers:
    """Return the times of stamps in one layout, of lines that bear different labels."""
    at_us = read_stamps(rows.lines, rows.line[heads], rows.labelled[heads], rows.labels, stamps, layout, rows.at_us[heads])
    at_us[numbers_of(pc.binary_length(stamps)) == 0] = UNDATED
    return at_us
