"""Skimming one source: of its lines, those that have to be read; of the others, when they were said.

What is certain is taken from raw bytes where a text is in a plain layout as it stands (engine/skim/plain), else from its lines
with their wrappers off (engine/skim/wrapped). Whatever is not certain is read, with the events around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from engine.correlate.bindings import SIGHTINGS
from engine.model.matches import ActivitySpan
from engine.model.records import RawLine, Record
from engine.parse import unwrap_line
from engine.ports import Chunk
from engine.quarantine import OF_THE_HOST, Quarantine, attempt
from engine.skim.alike import Told
from engine.skim.blocks import Blocks, Words
from engine.skim.bounds import out_of_bounds
from engine.skim.layouts import Layout
from engine.skim.lines import Flags, Numbers
from engine.skim.plain import Text, plain_blocks
from engine.skim.screen import Screen
from engine.skim.sight import Sight
from engine.skim.wrapped import record_blocks
from engine.skim.wrappings import Peeled, peeled

ENOUGH_LINES = 64  # below this, arrays cost more than they save
RECORDS = 10_000  # that are held at once

_Source = tuple[str, Sequence[int] | Numbers, Blocks | None]  # its id, its lines by number, its events if any are certain


class _Worth(Struct, frozen=True):
    """What of a text has to be read: which events, and of those the ones that may be like others; and the spans that are to be
    told behind some of its lines, by number."""

    kept: Flags
    alike: Flags
    spans: Mapping[int, ActivitySpan]


class Skimmer:
    """Skims one source, piece after piece. `lines` counts the lines there were, `left_out` the events that were not read.

    Args:
        quarantine: takes what raises; without one it is raised.
    """

    def __init__(self, sight: Sight, quarantine: Quarantine | None = None) -> None:
        self._sight, self._quarantine = sight, quarantine
        self._said: dict[str, _Said] = {}  # by source: the one, or the containers printed into it
        self.lines = self.left_out = 0

    def read(self, chunks: Sequence[Chunk]) -> Iterator[Record | Told | ActivitySpan]:
        """Yield what has to be read of `chunks`, of the one source and in order, with its wrappers off.

        A span stands for events that are left out. It comes behind the record that ends the event before them, or with the
        event that does, and joins on to that event before: it is never the first that is heard of a source.

        Chunks that cannot be skimmed are read line by line; a line that cannot be read goes into the quarantine.
        """
        self.lines += sum(_lines_in(chunk.data) for chunk in chunks)
        if self._quarantine is None:
            yield from self._skimmed(chunks)
            return
        left_out = self.left_out
        try:
            pieces = list(self._skimmed(chunks))
        except OF_THE_HOST:
            raise
        except Exception:
            self.left_out = left_out
            pieces = list(self._line_by_line(chunks))
        yield from pieces

    def _line_by_line(self, chunks: Sequence[Chunk]) -> Iterator[Record]:
        for chunk in chunks:
            for raw in chunk.lines():
                record = attempt(self._quarantine, "unwrap", raw, self._record, raw)
                if record is not None:
                    yield record

    def _skimmed(self, chunks: Sequence[Chunk]) -> Iterator[Record | Told | ActivitySpan]:
        text = Text(chunks)
        if len(text.lines) < ENOUGH_LINES or not self._sight.screen.complete:
            yield from (self._record(raw) for chunk in chunks for raw in chunk.lines())
        elif (found := plain_blocks(text, text, self._sight)) is not None:
            yield from self._plain(text, text, *found)
        elif (sources := self._peeled(text)) is not None:
            yield from self._wrapped(text, sources)
        else:
            for first in range(0, len(text.lines), RECORDS):
                yield from self._unwrapped(text, range(first, min(first + RECORDS, len(text.lines))))

    def _record(self, raw: RawLine) -> Record:
        return unwrap_line(raw, self._sight.formats)

    def _plain(self, text: Text, bare: Text | Peeled, layout: Layout, blocks: Blocks) -> Iterator[Record | Told | ActivitySpan]:
        """Yield what has to be read of `text`, which is of one source and `bare` of wrappers in these blocks."""
        worth = self._worth(bare.source_id, blocks)
        known = [self._sight.alike(layout, bare.source_id, labels) for labels in bare.labelled] if text.labelled else []
        for number in range(int(blocks.heads[0])):
            yield self._record(text.raw(number))
        kept = np.flatnonzero(worth.kept)
        heads, ends = blocks.heads[kept], np.append(blocks.heads, len(text.lines))[kept + 1]
        columns = heads, ends, worth.alike[kept] & bool(known), bare.which[heads]
        places = text.places(heads)
        for place, head, end, alike, which in zip(places, *(column.tolist() for column in columns), strict=True):
            span = worth.spans.get(head)
            if alike and which >= 0:
                told = known[which].tell(bare.lines.data(head, end), bare.lines.data_alike(head, end), place, span)
                if told is not None:
                    yield told
                    continue
            yield self._record(text.raw(head))
            if span is not None:
                yield span
            for number in range(head + 1, end):
                yield self._record(text.raw(number))

    def _peeled(self, text: Text) -> Sequence[Peeled] | None:
        if "#" in text.source_id:  # it is a container's already
            return None
        return peeled(text.lines, text.source_id, self._sight.wrapping, lambda number: self._record(text.raw(number)))

    def _wrapped(self, text: Text, sources: Sequence[Peeled]) -> Iterator[Record | Told | ActivitySpan]:
        """Yield what has to be read of sources whose lines are wrapped alike."""
        found = [plain_blocks(source, text, self._sight) for source in sources]
        if len(found) == 1 and found[0] is not None:
            yield from self._plain(text, sources[0], *found[0])
            return
        blocks = [
            (source.source_id, source.numbers, each[1] if each else None) for source, each in zip(sources, found, strict=True)
        ]
        yield from self._interleaved(len(text.lines), blocks, lambda number: self._record(text.raw(number)))

    def _unwrapped(self, text: Text, some: range) -> Iterator[Record | ActivitySpan]:
        """Yield what has to be read of lines of a source and the containers printed into it, each with its own wrappers."""
        documents = self._sight.kinds.among(text.lines, some, text.raw, text.zone).without(
            lambda at_us: out_of_bounds(at_us, text.chunks, True, lambda at: text.raw(some[at]).ingested_at)
        )
        records = [
            self._record(text.raw(number)) if kind is None else None for number, kind in zip(some, documents.kinds, strict=True)
        ]
        blocks = [
            (source_id, numbers, record_blocks([records[number] for number in numbers], documents.some(numbers), self._sight))
            for source_id, numbers in _by_source(records, text.source_id).items()
        ]
        yield from self._interleaved(len(some), blocks, lambda number: records[number] or self._record(text.raw(some[number])))

    def _interleaved(
        self, lines: int, sources: Sequence[_Source], record: Callable[[int], Record]
    ) -> Iterator[Record | ActivitySpan]:
        """Yield what has to be read of so many lines, each in its place; `record` returns that of a line."""
        read = np.ones(lines, np.bool_)
        spans: dict[int, ActivitySpan] = {}
        for source_id, numbers, blocks in sources:
            if blocks is not None:
                worth = self._worth(source_id, blocks, interleaved=len(sources) > 1)
                read[numbers] = blocks.lines_in(worth.kept)
                spans |= {int(numbers[at]): span for at, span in worth.spans.items()}
        for number in np.flatnonzero(read).tolist():
            yield record(number)
            if (span := spans.get(number)) is not None:
                yield span

    def _worth(self, source_id: str, blocks: Blocks, interleaved: bool = False) -> _Worth:
        anyway = blocks.anyway()
        kept = anyway | self._said.setdefault(source_id, _Said()).bearing(blocks, self._sight.screen)
        if interleaved:
            kept[1:] |= kept[:-1]  # an event is told when the next one of its source begins: in the order of all sources
        self.left_out += int(np.count_nonzero(~kept))
        return _Worth(kept, kept & ~anyway, blocks.spans(source_id, kept))


class _Said:
    """What a source has said in the same words as often as it counts."""

    def __init__(self) -> None:
        self._heads: dict[Words, set[tuple[int, bytes]]] = {}
        self._known: set[Words] = set()

    def bearing(self, blocks: Blocks, screen: Screen) -> Flags:
        """Return which blocks may bear something that is not known yet."""
        bear = np.zeros(len(blocks.heads), np.bool_)
        bear[[block for block, said in blocks.said(screen, self._known) if self._counts(said, blocks, block)]] = True
        return bear

    def _counts(self, said: Words | None, blocks: Blocks, block: int) -> bool:
        """Tell whether an event in which this was said counts: until SIGHTINGS events that differ in time or head said so. What
        is said together with something else may be taken for that."""
        if said is None:
            return True
        if said in self._known:  # since it was asked what is said
            return False
        heads = self._heads.setdefault(said, set())
        heads.add((int(blocks.at_us[block]), blocks.lines.line(int(blocks.heads[block]))))
        if len(heads) >= SIGHTINGS:
            self._known.add(said)
            del self._heads[said]
        return True


def _lines_in(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _by_source(records: Sequence[Record | None], source_id: str) -> Mapping[str, Sequence[int]]:
    """Return the numbers of the records of each source; None are those of `source_id`."""
    if all(record is None or record.source_id == source_id for record in records):
        return {source_id: range(len(records))}
    found: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        found.setdefault(source_id if record is None else record.source_id, []).append(number)
    return found
