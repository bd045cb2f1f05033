"""Records of one source that follow each other, as one chunk: what is done for a chunk is done once for hundreds of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate

import numpy as np
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE
from msgspec import Struct

from engine.model.records import Labels
from engine.ports import Chunk, Piece

JOINED_BYTES = 256 * 1024


class Origin(Struct, frozen=True, eq=False):
    """A source, the stream it is read out of, and its labels. Two are one origin when they are one object."""

    source_id: str
    stream: str
    labels: Labels


class Taken(Struct, frozen=True, dict=True):
    """Records that follow each other in their stream: their lines, how many bytes each has of them (None: each is one line),
    the positions they begin at, and their times as the client gives them. The records themselves are not held: what is done
    while they are in the cache is cheaper."""

    data: bytes
    sizes: Sequence[int] | None
    starts: Sequence[int]
    times: Sequence[tuple[int, int]]

    def place(self, at: int) -> tuple[int, datetime | None]:
        """Return the position of byte `at` of their lines, and when it was taken if the record says so."""
        number = bisect_right(self._begins, at) - 1
        return self.starts[number] + at - self._begins[number], _time(*self.times[number])

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


class Joining:
    """The records that the next one may join."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._parts: list[bytes] = []
        self._pieces: list[Piece] = []
        self._start = self._bytes = self._end = 0

    def add(self, origin: Origin, taken: Taken, end: int) -> Chunk | None:
        """Take records; the next one begins at `end`. Return what was held if they do not join it."""
        done = None
        if origin is not self._origin or taken.starts[0] != self._end or self._bytes + len(taken.data) > JOINED_BYTES:
            done = self.rest()
            self._origin, self._start = origin, taken.starts[0]
        self._pieces.append((self._bytes, taken))
        self._parts.append(taken.data)
        self._bytes += len(taken.data)
        self._end = end
        return done

    def rest(self) -> Chunk | None:
        """Return what is held, if anything, and hold nothing."""
        done, origin = None, self._origin
        if origin is not None:
            data = b"".join(self._parts)
            done = Chunk(origin.source_id, self._start, data, 0, None, origin.labels, origin.stream, self._end, self._pieces)
        self._origin, self._parts, self._pieces, self._bytes = None, [], [], 0
        return done
