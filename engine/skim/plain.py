"""Events of raw bytes: those of a text in a layout that is certain as it stands, without any wrapper."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import cached_property
from itertools import repeat

import numpy as np
from msgspec import Struct

from engine.match.checks import expression
from engine.model.records import Labels, RawLine
from engine.parse.times import zone_of
from engine.ports import Chunk
from engine.skim.blocks import Blocks
from engine.skim.bounds import out_of_bounds
from engine.skim.layouts import Layout, surely_continues, to_us
from engine.skim.lines import Bytes, Flags, Lines, Numbers, Place, lines_of
from engine.skim.sight import Sight
from engine.skim.wrappings import BARE, Peeled, Wrapping

PROBED_LINES = 40  # at the beginning of a text, for one in a certain layout
_WEEK_MS = 7 * 86_400_000  # a zone that goes forward and back again within a week is none


class Text:
    """The lines of chunks of one source, in order, as they stand."""

    wrappings: Sequence[Wrapping] = ()

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks, self.source_id = chunks, chunks[0].source_id
        self.lines = lines_of(b"".join(_ended(chunk.data) for chunk in chunks))
        self._begins_at = begins = np.cumsum([0, *(len(_ended(chunk.data)) for chunk in chunks)])
        self._begins: list[int] = begins.tolist()
        self._firsts: list[int] = np.searchsorted(self.lines.starts, begins).tolist()

    def raw(self, number: int) -> RawLine:
        """Return a line with the place that it comes from."""
        chunk, at, line_number = self._origin(number)
        offset, taken = chunk.place(at)
        line = self.lines.data(number, number + 1).rstrip(b"\r\n")
        return RawLine(chunk.source_id, offset, line, line_number, taken, chunk.labels, chunk.origin(at))

    def places(self, numbers: Numbers) -> Iterator[Place]:
        """Yield the places that some lines come from, in their order."""
        if any(chunk.records for chunk in self.chunks):
            yield from map(self._place, numbers.tolist())
            return
        starts = self.lines.starts[numbers]
        which = np.searchsorted(self._begins_at, starts, side="right") - 1
        offsets = np.array([chunk.offset for chunk in self.chunks]) - self._begins_at[:-1]
        counts = np.array([chunk.number for chunk in self.chunks])
        lines = np.where(counts[which] > 0, counts[which] + numbers - np.array(self._firsts)[which], 0)
        yield from zip((starts + offsets[which]).tolist(), lines.tolist(), repeat(""))

    def _place(self, number: int) -> Place:
        chunk, at, line_number = self._origin(number)
        return chunk.place(at)[0], line_number, chunk.origin(at)

    def _origin(self, number: int) -> tuple[Chunk, int, int]:
        """Return the chunk that a line is in, where it begins there, and its number in the source."""
        start = self.lines.begins[number]
        at = bisect_right(self._begins, start) - 1
        chunk = self.chunks[at]
        return chunk, start - self._begins[at], chunk.number + number - self._firsts[at] if chunk.number else 0

    def wrapping(self, _number: int) -> Wrapping:
        """Return what stands around a line."""
        return BARE

    @cached_property
    def which(self) -> Numbers:
        """Of each line, which of `labelled` are its labels."""
        return np.zeros(len(self.lines), np.int64)

    @cached_property
    def odd(self) -> Flags:
        """Which lines are known to be odd: none yet."""
        return np.zeros(len(self.lines), np.bool_)

    @cached_property
    def zone(self) -> tzinfo | None:
        """The zone of the stamps of all lines, None when they have different ones."""
        first, *others = {chunk.labels.get("timezone", "") for chunk in self.chunks}
        return None if others else zone_of(first)

    @cached_property
    def labelled(self) -> Sequence[Labels]:
        """The labels of all lines, none when they have different ones."""
        first, *others = (chunk.labels for chunk in self.chunks)
        return [first] if all(each == first for each in others) else []


class _Heads(Struct, frozen=True):
    """The lines that begin an event of a layout: their numbers, their beginnings and their times as printed."""

    layout: Layout
    numbers: Numbers
    rows: Bytes
    at_ms: Numbers

    def in_one_zone(self, chunks: Sequence[Chunk]) -> bool:
        """Tell whether times as printed are as far apart as they are: no clock was put forward or back between them."""
        zones = {chunk.labels.get("timezone", "") for chunk in chunks}
        if self.layout.zoned or zones <= {"", "UTC"}:
            return True
        if len(zones) > 1:
            return False
        zone = zone_of(next(iter(zones)))
        at = [self.layout.time(self.rows[int(each)], zone) for each in (self.at_ms.argmin(), self.at_ms.argmax())]
        locals_ = [None if each is None else each.astimezone(zone) for each in at]
        offsets = {None if each is None else each.replace(fold=fold).utcoffset() for each in locals_ for fold in (0, 1)}
        return len(offsets) == 1 and None not in offsets and int(np.ptp(self.at_ms)) < _WEEK_MS


def plain_blocks(bare: Text | Peeled, text: Text, sight: Sight) -> tuple[Layout, Blocks] | None:
    """Return the events of `bare`, which is all of `text` or a part of it without wrappers, and their layout; None when too
    little is certain."""
    lines, chunks = _searched(bare.lines), text.chunks
    layout = layout_in(lines, sight)
    if layout is None or not sight.takes_off(bare.wrappings, layout):
        return None
    rows = lines.beginnings()
    heads = _heads(layout, rows, bare.odd)
    if len(heads.numbers) < 2 or not heads.in_one_zone(chunks):
        return None
    strange = doubtful(layout, lines, heads.numbers)
    strange[_strange(bare, rows, heads.numbers, sight)] = True
    zone = zone_of(chunks[0].labels.get("timezone", ""))
    strange |= _misdated(heads, bare, text, zone)
    blocks = Blocks(lines, heads.numbers, heads.at_ms * 1000, strange, lambda block: layout.time(heads.rows[block], zone))
    return (layout, blocks) if np.count_nonzero(blocks.lines_in(strange)) * 2 < len(lines) else None


def layout_in(lines: Lines, sight: Sight) -> Layout | None:
    """Return the layout of the first of some lines that has a certain one."""
    for number in range(min(PROBED_LINES, len(lines))):
        layout = sight.layout(lines.line(number))
        if layout is not None:
            return layout
    return None


def _heads(layout: Layout, rows: Bytes, odd: Flags) -> _Heads:
    numbers = np.flatnonzero(layout.fits(rows) & ~odd)
    at_ms = layout.times(rows[numbers]) if len(numbers) else numbers
    numbers, at_ms = numbers[at_ms >= 0], at_ms[at_ms >= 0]
    return _Heads(layout, numbers, rows[numbers], at_ms)


def _strange(text: Text | Peeled, rows: Bytes, heads: Numbers, sight: Sight) -> Numbers:
    """Return the blocks in which a line may be anything but the continuation of an event."""
    others = ~surely_continues(rows) & ~text.odd
    others[: heads[0]] = False
    others[heads] = False
    numbers = np.flatnonzero(others)
    wrappings = map(text.wrapping, numbers.tolist())
    well = np.fromiter(map(sight.goes_on, text.lines.some(numbers), wrappings), np.bool_, len(numbers))
    owners = np.searchsorted(heads, np.concatenate((numbers[~well], np.flatnonzero(text.odd))), side="right") - 1
    return owners[owners >= 0]


def _misdated(heads: _Heads, bare: Text | Peeled, text: Text, zone: tzinfo) -> Flags:
    """Return which blocks may have a stamp that is out of bounds (engine/parse/stamps): the parser judges each of them.

    What is printed is as far from the time in UTC everywhere (see `in_one_zone`) as in the first of them.
    """
    first = heads.layout.time(heads.rows[0], zone)
    if first is None:
        return np.ones(len(heads.numbers), np.bool_)
    lines = bare.numbers[heads.numbers] if isinstance(bare, Peeled) else heads.numbers
    at_us = heads.at_ms * 1000 - int(heads.at_ms[0]) * 1000 + to_us(first)
    return out_of_bounds(at_us, text.chunks, heads.layout.zoned, lambda block: text.raw(int(lines[block])).ingested_at)


def doubtful(layout: Layout, lines: Lines, heads: Numbers) -> Flags:
    """Return which blocks bear what makes their layout doubtful."""
    doubted = np.zeros(len(heads), np.bool_)
    if layout.doubt:
        ends = np.array([hit.end() for hit in expression(layout.doubt).finditer(lines.text)], np.int64)
        owners = lines.owners(heads, ends)
        doubted[owners[owners >= 0]] = True
    return doubted


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") or not data else data + b"\n"


def _searched(lines: Lines) -> Lines:
    """Return the same lines as they are searched: a sign's byte is a text's character, and a line's end is one byte."""
    text = lines.text
    plain = text if text.isascii() else text.decode("utf-8", "replace").encode("ascii", "replace")
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n")
    return lines if plain is text else lines_of(plain)
