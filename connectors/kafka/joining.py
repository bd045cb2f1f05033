"""Records of a partition joined to chunks, one of each source: what is done for a chunk is done once for hundreds of lines."""

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

Time = tuple[int, int]  # of a record: what it is the time of, and milliseconds since 1970


class RecordOrigin(Struct, frozen=True, eq=False):
    """A source and its labels. Two are one origin when they are one object."""

    source_id: str
    labels: Labels


class RecordRun(Struct, frozen=True, dict=True):
    """Records of one origin, in order: their lines, each with its line end; how many bytes each record has of them (None: each
    is one line); the positions they begin at, and their times as the client gives them. The records themselves are not held:
    what is done while they are in the cache is cheaper."""

    data: bytes
    sizes: Sequence[int] | None
    starts: Sequence[int]
    times: Sequence[Time]

    @classmethod
    def of(cls, parts: Sequence[bytes], starts: Sequence[int], times: Sequence[Time]) -> Self:
        """Make it of what each record holds: a line or several, without a line end or with one."""
        data = b"\n".join(parts) + b"\n"
        if data.count(b"\n") == len(parts):
            return cls(data, None, starts, times)
        ended = [part if part.endswith(b"\n") else part + b"\n" for part in parts]
        return cls(b"".join(ended), list(map(len, ended)), starts, times)

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of byte `at` of their lines, and when it was taken if the record says so."""
        number = bisect_right(self._begins, at) - 1
        return self.starts[number] + at - self._begins[number], _time(*self.times[number])

    def earliest(self) -> datetime | None:
        """Return the earliest time of the records; None when the earliest is none, or there is none."""
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
    """Return the time of a record; none where it has none, or what a producer gave is none (microseconds, say)."""
    with suppress(ValueError, OverflowError):
        return datetime.fromtimestamp(at_ms / 1000, UTC) if kind != TIMESTAMP_NOT_AVAILABLE and at_ms >= 0 else None
    return None


class _Held:
    """What is held of one origin: what was taken together, and behind that single records."""

    def __init__(self, origin: RecordOrigin) -> None:
        self.origin = origin
        self.records: list[tuple[bytes, int, Time]] = []
        self._taken: list[RecordRun] = []

    def taken(self) -> list[RecordRun]:
        """Return all that is held, in order."""
        if self.records:
            self._taken.append(RecordRun.of(*zip(*self.records, strict=True)))
            self.records = []
        return self._taken


class Joining:
    """What was read of a partition and is not given on yet: of each source, the records that follow each other in it.

    Args:
        stream: the name of the partition.
        start: the position that reading begins at.
    """

    def __init__(self, stream: str, start: int) -> None:
        self._stream = stream
        self._start = self._end = start
        self._sources: dict[str, _Held] = {}
        self._bytes = 0

    def add(self, origin: RecordOrigin, taken: RecordRun) -> Iterator[Chunk]:
        """Take records of one origin; yield what is held first if their source has other labels there."""
        if self._is_other(origin):
            yield from self.rest()
        self._held(origin).taken().append(taken)
        self._bytes += len(taken.data)

    def add_each(
        self, origins: Sequence[RecordOrigin], parts: Sequence[bytes], starts: Sequence[int], times: Sequence[Time]
    ) -> Iterator[Chunk]:
        """Take records of several origins: what each holds, where it begins, and its time. Yields as `add`."""
        some, records = dict.fromkeys(origins), zip(parts, starts, times, strict=True)
        if len({origin.source_id for origin in some}) < len(some):  # one goes from labels to others: it is to stay in order
            for origin, run in groupby(zip(origins, records, strict=True), itemgetter(0)):
                yield from self.add(origin, RecordRun.of(*zip(*(record for _, record in run), strict=True)))
            return
        if any(map(self._is_other, some)):
            yield from self.rest()
        held = {origin: self._held(origin).records for origin in some}
        for origin, record in zip(origins, records, strict=True):
            held[origin].append(record)
        self._bytes += sum(map(len, parts))

    def reached(self, end: int) -> Iterator[Chunk]:
        """Take it that the partition is read up to `end`; yield what is held if that is enough."""
        self._end = end
        if self._bytes >= JOINED_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[Chunk]:
        """Yield what is held, and hold nothing: a chunk of each source; the last ends where the partition is read to."""
        sources = list(self._sources.values())
        if not sources and self._start < self._end:
            sources = [_Held(RecordOrigin(self._stream, {}))]
        for number, held in enumerate(sources, 1):
            end = self._end if number == len(sources) else self._start
            yield self._chunk(held.origin, held.taken(), end)
        self._sources, self._start, self._bytes = {}, self._end, 0

    def _is_other(self, origin: RecordOrigin) -> bool:
        held = self._sources.get(origin.source_id)
        return held is not None and held.origin is not origin

    def _held(self, origin: RecordOrigin) -> _Held:
        held = self._sources.get(origin.source_id)
        if held is None:
            held = self._sources[origin.source_id] = _Held(origin)
        return held

    def _chunk(self, origin: RecordOrigin, taken: Sequence[RecordRun], end: int) -> Chunk:
        begins = accumulate((len(each.data) for each in taken), initial=0)
        data, pieces = b"".join([each.data for each in taken]), list(zip(begins, taken, strict=False))
        return Chunk(origin.source_id, self._start, data, 0, None, origin.labels, self._stream, end, pieces)
