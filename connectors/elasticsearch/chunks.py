"""Join lines of documents into chunks, one for each source: work for a chunk is done once for hundreds of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from connectors.elasticsearch.documents import IndexedLine, LineSource, in_order, moment
from engine.model.origins import origin_of
from engine.ports import Chunk

SYSTEM = "elasticsearch"


class DocumentRun(Struct, frozen=True, dict=True):
    """Lines of one source, in order, one for each document. They have consecutive positions from `place_of_first` on."""

    lines: Sequence[IndexedLine]
    place_of_first: int

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of the line at byte `at`, and its `event.ingested`; None without one."""
        number = self._number(at)
        return self.place_of_first + number, moment(self.lines[number].ingested)

    def earliest(self) -> datetime | None:
        """Return the earliest `event.ingested` of the lines; None when none has it."""
        return min((at for line in self.lines if (at := moment(line.ingested)) is not None), default=None)

    def origin(self, at: int) -> str:
        """Return the origin of the line at byte `at`: its document."""
        line = self.lines[self._number(at)]
        return origin_of(SYSTEM, line.index, line.id)

    def _number(self, at: int) -> int:
        return bisect_right(self._begins, at) - 1

    @cached_property
    def _begins(self) -> Sequence[int]:
        return list(accumulate((len(line.data) for line in self.lines[:-1]), initial=0))


class Chunking:
    """Makes the chunks of a stream that is read from the position `place`."""

    def __init__(self, stream: str, place: int) -> None:
        self._stream, self._place = stream, place

    def chunks(self, lines: Sequence[IndexedLine]) -> Iterator[Chunk]:
        """Yield a chunk for each source of `lines`; each line takes one position."""
        sources = in_order(lines)
        end = self._place + len(lines)
        first = self._place
        for number, (source, source_lines) in enumerate(sources.items(), 1):
            yield self._chunk(source, source_lines, first, end if number == len(sources) else self._place)
            first += len(source_lines)
        self._place = end

    def reached(self, place: int) -> Iterator[Chunk]:
        """Yield an empty chunk up to `place`, unless that is reached."""
        if place > self._place:
            yield Chunk(self._stream, self._place, b"", 0, None, {}, self._stream, place)
            self._place = place

    def _chunk(self, source: LineSource, lines: Sequence[IndexedLine], first: int, end: int) -> Chunk:
        data = b"".join([line.data for line in lines])
        records = [(0, DocumentRun(lines, first))]
        return Chunk(source.source_id, self._place, data, 0, None, source.labels, self._stream, end, records)
