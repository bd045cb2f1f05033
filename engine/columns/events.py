"""events: records joined to events, which begin at headers; the time of each, and which ones the reference has to read."""

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
    """The events of a block. Those of one source are together and in order.

    Attributes:
        heads: the first row of each event.
        ends: the row behind the last one of each event.
        layouts: the layout of each event's header; the number of layouts where a wrapper gave a whole event.
        at_us: the time of each event, or NO_TIME, MISDATED, UNDATED.
        by_header: events whose time is that of the header, not of a wrapper.
        alike: the text of each event with its line ends, and with 0 for every digit.
        for_reference: events that the reference has to read.
    """

    rows: RecordRows
    heads: Integers
    ends: Integers
    layouts: Layouts
    at_us: Integers
    by_header: Flags
    alike: pa.StringArray
    for_reference: Flags

    def __len__(self) -> int:
        return len(self.heads)

    def source_id(self, event: int) -> str:
        """Return the source of an event."""
        return self.rows.sources[int(self.rows.source[int(self.heads[event])])]


def events_of(rows: RecordRows, recogniser: Recogniser, layouts: Layouts) -> Events:
    """Return the events of `rows`. Rows before the first header of a source belong to none."""
    whole = rows.fields != 0
    begins = ((layouts != NONE) | whole) & ~rows.irregular
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
    for_reference = at_us == NO_TIME
    for_reference |= np.isin(head_layouts, recogniser.label_sharing)
    for_reference |= (ends - heads > BLOCK_LINES) | (rows.starts[ends] - rows.starts[heads] > BLOCK_BYTES)
    owners = np.searchsorted(heads, np.flatnonzero(rows.irregular), side="right") - 1
    for_reference[owners[owners >= 0]] = True
    for_reference |= _ends_in_header(rows, recogniser, heads, head_layouts)
    alike = _alike(rows, recogniser, heads, ends, head_layouts, starts)
    return Events(rows, heads, ends, head_layouts, at_us, by_header, alike, for_reference)


def _ends_in_header(rows: RecordRows, recogniser: Recogniser, heads: Integers, layouts: Layouts) -> Flags:
    """Return the events whose first line is no header once the blanks at its end are removed, as an event's text has none."""
    first_lines = rows.texts.take(index_of(heads))
    for_reference = matching(first_lines, r"[ \t]$") & (layouts < len(recogniser.formats))
    blank = np.flatnonzero(for_reference)
    if len(blank):
        trimmed = recogniser.layouts(pc.ascii_rtrim_whitespace(first_lines.take(index_of(blank))))
        for_reference[blank] = trimmed != layouts[blank]
    return for_reference


def _alike(
    rows: RecordRows, recogniser: Recogniser, heads: Integers, ends: Integers, layouts: Layouts, starts: Integers
) -> pa.StringArray:
    """Return the text of each event with 0 for every digit, except in the levels of digit-sensitive layouts."""
    data = masked(rows.data)
    digit_sensitive = np.isin(layouts, recogniser.digit_sensitive)
    if digit_sensitive.any():
        restored = bytearray(data)
        for row in heads[digit_sensitive].tolist():
            begin, end = int(rows.starts[row]), int(rows.starts[row + 1])
            span = recogniser.level_span(rows.data[begin : end - 1])
            restored[begin + span[0] : begin + span[1]] = rows.data[begin + span[0] : begin + span[1]]
        data = bytes(restored)
    if len(heads) and (ends[:-1] == heads[1:]).all():
        return strings(data, starts)
    bounds = np.empty(2 * len(heads) + 1, np.int64)  # of events, and of the rows between them
    bounds[:-1:2], bounds[1::2], bounds[-1] = rows.starts[heads], rows.starts[ends], len(data)
    return strings(data, bounds).take(index_of(np.arange(len(heads)) * 2))


def _times(rows: RecordRows, recogniser: Recogniser, heads: Integers, layouts: Layouts) -> Integers:
    """Return the time of each event by its header; UNDATED where the header has no stamp."""
    at_us = np.full(len(heads), UNDATED, np.int64)
    for number in np.unique(layouts).tolist():
        head = recogniser.head(number) if number < len(recogniser.formats) else ""
        if not head:
            continue
        own = np.flatnonzero(layouts == number)
        first_lines = rows.texts.take(index_of(heads[own]))
        stamps = pc.struct_field(pc.extract_regex(first_lines, head), "time")
        at_us[own] = _read(rows, heads[own], stamps, recogniser.formats[number].time)
    return at_us


def _read(rows: RecordRows, heads: Integers, stamps: pa.StringArray, layout: str) -> Integers:
    """Return the times of stamps in one layout; UNDATED for empty ones."""
    at_us = read_stamps(rows.lines, rows.line[heads], rows.label_codes[heads], rows.labels, stamps, layout, rows.at_us[heads])
    at_us[numbers_of(pc.binary_length(stamps)) == 0] = UNDATED
    return at_us
