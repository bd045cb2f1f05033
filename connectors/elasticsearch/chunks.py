"""Lines of documents joined to chunks, one of each source: what is done for a chunk is done once for hundreds of lines."""

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
    """Documents of one source, in order, each a line: `place` is the position of the first, and theirs follow it."""

    lines: Sequence[IndexedLine]
    place_of_first: int

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of the line that holds byte `at`, and when the cluster took it if it says so."""
        number = self._number(at)
        return self.place_of_first + number, moment(self.lines[number].taken)

    def earliest(self) -> datetime | None:
        """Return the earliest time that one was taken; None when none says so."""
        return min((at for line in self.lines if (at := moment(line.taken)) is not None), default=None)

    def origin(self, at: int) -> str:
        """Return the document of the line that holds byte `at`."""
        line = self.lines[self._number(at)]
        return origin_of(SYSTEM, line.index, line.id)

    def _number(self, at: int) -> int:
        return bisect_right(self._begins, at) - 1

    @cached_property
    def _begins(self) -> Sequence[int]:
        return list(accumulate((len(line.data) for line in self.lines[:-1]), initial=0))


class Chunking:
    """Makes the chunks of a stream, which is read from the position `place` on."""

    def __init__(self, stream: str, place: int) -> None:
        self._stream, self._place = stream, place

    def chunks(self, lines: Sequence[IndexedLine]) -> Iterator[Chunk]:
        """Yield a chunk of each source that `lines` are from; they take as many positions as there are lines."""
        sources = in_order(lines)
        end = self._place + len(lines)
        first = self._place
        for number, (source, source_lines) in enumerate(sources.items(), 1):
            yield self._chunk(source, source_lines, first, end if number == len(sources) else self._place)
            first += len(source_lines)
        self._place = end

    def reached(self, place: int) -> Iterator[Chunk]:
        """Yield what says that there is nothing up to `place`."""
        if place > self._place:
            yield Chunk(self._stream, self._place, b"", 0, None, {}, self._stream, place)
            self._place = place

    def _chunk(self, source: LineSource, lines: Sequence[IndexedLine], first: int, end: int) -> Chunk:
        data = b"".join([line.data for line in lines])
        records = [(0, DocumentRun(lines, first))]
        return Chunk(source.source_id, self._place, data, 0, None, source.labels, self._stream, end, records)
