"""Joins the records of a partition into chunks, one of each source, so that work per chunk is done once for hundreds of
lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Self

import numpy as np
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from msgspec import Struct

from engine.model.records import Labels
from engine.ports import Chunk

JOINED_BYTES = 256 * 1024

Time = tuple[int, int]  # of a record: the type of the timestamp (a TIMESTAMP_ constant), and milliseconds since 1970


class RecordOrigin(Struct, frozen=True, eq=False):
    """A source and its labels. Two origins are equal only if they are the same object."""

    source_id: str
    labels: Labels


class RecordRun(Struct, frozen=True, dict=True):
    """Consecutive records of one origin, as columns.

    `data`: their lines, each with its line end. `sizes`: the number of bytes of each record in `data`; None when each is one
    line. `starts`: the positions at which they begin. `times`: their timestamps as of the client. The records themselves are
    not stored: it is cheaper to process them while they are in the processor's cache.
    """

    data: bytes
    sizes: Sequence[int] | None
    starts: Sequence[int]
    times: Sequence[Time]

    @classmethod
    def of(cls, parts: Sequence[bytes], starts: Sequence[int], times: Sequence[Time]) -> Self:
        """Return the run of records with these contents: each is one or more lines, with or without a line end."""
        data = b"\n".join(parts) + b"\n"
        if data.count(b"\n") == len(parts):
            return cls(data, None, starts, times)
        ended = [part if part.endswith(b"\n") else part + b"\n" for part in parts]
        return cls(b"".join(ended), list(map(len, ended)), starts, times)

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position in the partition of byte `at` of the data, and the time of its record, None if it has none."""
        number = bisect_right(self._begins, at) - 1
        return self.starts[number] + at - self._begins[number], _time(*self.times[number])

    def earliest(self) -> datetime | None:
        """Return the earliest time of the records; None when there are none, or the earliest timestamp is no valid time."""
        return _time(*min(self.times, key=itemgetter(1))) if self.times else None

    def origin(self, _at: int) -> str:
        """Return nothing: a record is in a stream only."""
        return ""

    @cached_property
    def _begins(self) -> Sequence[int]:
        if self.sizes is not None:
            return list(accumulate(self.sizes[:-1], initial=0))
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord("\n"))
        return [0, *(ends[:-1] + 1).tolist()]


def _time(kind: int, at_ms: int) -> datetime | None:
    """Return the time of a record; None when it has none, or when the producer's value is no valid time (microseconds, for
    example)."""
    with suppress(ValueError, OverflowError):
        return datetime.fromtimestamp(at_ms / 1000, UTC) if kind != TIMESTAMP_NOT_AVAILABLE and at_ms >= 0 else None
    return None


class _PendingRecords:
    """The records of one origin that wait for their chunk: runs, and behind them single records."""

    def __init__(self, origin: RecordOrigin) -> None:
        self.origin = origin
        self.records: list[tuple[bytes, int, Time]] = []
        self._runs: list[RecordRun] = []

    def runs(self) -> list[RecordRun]:
        """Return all of them in order, as runs. The list may be appended to."""
        if self.records:
            self._runs.append(RecordRun.of(*zip(*self.records, strict=True)))
            self.records = []
        return self._runs


class Joining:
    """Collects the records that are read of a partition, by source, and yields them as chunks.

    Args:
        stream: the name of the partition.
        start: the position at which reading begins.
    """

    def __init__(self, stream: str, start: int) -> None:
        self._stream = stream
        self._start = self._end = start
        self._sources: dict[str, _PendingRecords] = {}
        self._bytes = 0

    def add(self, origin: RecordOrigin, run: RecordRun) -> Iterator[Chunk]:
        """Add records of one origin. If records of its source with other labels are pending, yield all pending ones first."""
        if self._is_other(origin):
            yield from self.rest()
        self._pending(origin).runs().append(run)
        self._bytes += len(run.data)

    def add_each(
        self, origins: Sequence[RecordOrigin], parts: Sequence[bytes], starts: Sequence[int], times: Sequence[Time]
    ) -> Iterator[Chunk]:
        """Add single records: the origin, the content, the start and the time of each. Yields as `add` does."""
        unique, records = dict.fromkeys(origins), zip(parts, starts, times, strict=True)
        if len({origin.source_id for origin in unique}) < len(unique):  # a source changes its labels: it must stay in order
            for origin, group in groupby(zip(origins, records, strict=True), itemgetter(0)):
                yield from self.add(origin, RecordRun.of(*zip(*(record for _, record in group), strict=True)))
            return
        if any(map(self._is_other, unique)):
            yield from self.rest()
        pending = {origin: self._pending(origin).records for origin in unique}
        for origin, record in zip(origins, records, strict=True):
            pending[origin].append(record)
        self._bytes += sum(map(len, parts))

    def reached(self, end: int) -> Iterator[Chunk]:
        """Note that the partition is read up to `end`. Yield the pending records if they have JOINED_BYTES."""
        self._end = end
        if self._bytes >= JOINED_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield all pending records, one chunk of each source; the last chunk ends at the position up to which the partition is
        read. Without records an empty chunk spans the offsets that were read."""
        sources = list(self._sources.values())
        if not sources and self._start < self._end:
            sources = [_PendingRecords(RecordOrigin(self._stream, {}))]
        for number, pending in enumerate(sources, 1):
            end = self._end if number == len(sources) else self._start
            yield self._chunk(pending.origin, pending.runs(), end)
        self._sources, self._start, self._bytes = {}, self._end, 0

    def _is_other(self, origin: RecordOrigin) -> bool:
        pending = self._sources.get(origin.source_id)
        return pending is not None and pending.origin is not origin

    def _pending(self, origin: RecordOrigin) -> _PendingRecords:
        pending = self._sources.get(origin.source_id)
        if pending is None:
            pending = self._sources[origin.source_id] = _PendingRecords(origin)
        return pending

    def _chunk(self, origin: RecordOrigin, runs: Sequence[RecordRun], end: int) -> Chunk:
        begins = accumulate((len(run.data) for run in runs), initial=0)
        data, pieces = b"".join([run.data for run in runs]), list(zip(begins, runs, strict=False))
        return Chunk(origin.source_id, self._start, data, 0, None, origin.labels, self._stream, end, pieces)
