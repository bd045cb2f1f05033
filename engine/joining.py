"""Joins the records that are read of a stream into chunks, one of each source. Pure.

Work per chunk is then done once for hundreds of lines, however the records of several sources are interleaved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from engine.model.records import Labels
from engine.ports import Chunk, RecordPositions

JOINED_BYTES = 256 * 1024  # of all sources of a stream that are pending at most, but for one more record


class LineSource(Struct, frozen=True, eq=False):
    """A source and its labels. Two are one only if they are the same object."""

    source_id: str
    labels: Labels


class _PendingRecords:
    """The records of one source that wait for their chunk, as columns."""

    __slots__ = ("positions", "source", "times_us", "values")

    def __init__(self, source: LineSource) -> None:
        self.source = source
        self.values: list[bytes] = []
        self.positions: list[int] = []
        self.times_us: list[int] = []

    def chunk(self, stream: str, start: int, end: int) -> Chunk:
        data = b"\n".join(self.values) + b"\n"
        if data.count(b"\n") == len(self.values):  # nearly always: each is one line without its end
            begins = accumulate((len(value) + 1 for value in self.values[:-1]), initial=0)
        else:
            ended = [value if value.endswith(b"\n") else value + b"\n" for value in self.values]
            data = b"".join(ended)
            begins = accumulate(map(len, ended[:-1]), initial=0)
        positions = RecordPositions(list(begins), self.positions, self.times_us)
        return Chunk(self.source.source_id, start, data, 0, None, self.source.labels, stream, end, positions)


class RecordJoining:
    """Collects the records of a stream by source and yields them as chunks.

    Args:
        stream: the name of the stream.
        start: the position at which reading begins.
    """

    def __init__(self, stream: str, start: int) -> None:
        self._stream = stream
        self._start = self._end = start
        self._pending: dict[str, _PendingRecords] = {}  # by source
        self._bytes = 0

    def add(
        self, source: LineSource, values: Sequence[bytes], positions: Sequence[int], times_us: Sequence[int]
    ) -> Iterator[Chunk]:
        """Add records of one source: what each holds (one or more lines, with or without a line end), its position in the
        stream and its ingest time (see RecordPositions).

        Yields all pending records first when those of the source have other labels: its lines stay in order.
        """
        if self._is_other(source):
            yield from self.rest()
        pending = self._of(source)
        pending.values += values
        pending.positions += positions
        pending.times_us += times_us
        self._bytes += sum(map(len, values))

    def add_each(
        self, sources: Sequence[LineSource], values: Sequence[bytes], positions: Sequence[int], times_us: Sequence[int]
    ) -> Iterator[Chunk]:
        """Add records of several sources, in the order in which they stand in the stream. Yields as `add` does."""
        numbers: dict[LineSource, list[int]] = {}
        for number, source in enumerate(sources):
            numbers.setdefault(source, []).append(number)
        if len({source.source_id for source in numbers}) < len(numbers):  # a source changes its labels: it must stay in order
            for source, value, position, time_us in zip(sources, values, positions, times_us, strict=True):
                yield from self.add(source, (value,), (position,), (time_us,))
            return
        for source, own in numbers.items():
            times = [times_us[number] for number in own]
            yield from self.add(source, [values[number] for number in own], [positions[number] for number in own], times)

    def reached(self, end: int) -> Iterator[Chunk]:
        """Note that the stream is read up to the position `end`. Yield the pending records if they have JOINED_BYTES."""
        self._end = end
        if self._bytes >= JOINED_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield all pending records, one chunk of each source; the last chunk ends at the position up to which the stream is
        read. Without records an empty chunk spans the positions that were read."""
        pending = list(self._pending.values())
        for number, records in enumerate(pending, 1):
            yield records.chunk(self._stream, self._start, self._end if number == len(pending) else self._start)
        if not pending and self._start < self._end:
            yield Chunk(self._stream, self._start, b"", stream=self._stream, end=self._end)
        self._pending, self._start, self._bytes = {}, self._end, 0

    def _is_other(self, source: LineSource) -> bool:
        pending = self._pending.get(source.source_id)
        return pending is not None and pending.source is not source

    def _of(self, source: LineSource) -> _PendingRecords:
        pending = self._pending.get(source.source_id)
        if pending is None:
            pending = self._pending[source.source_id] = _PendingRecords(source)
        return pending
