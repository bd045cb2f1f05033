"""Records of one source that follow each other, as one chunk: what is done for a chunk is done once for hundreds of lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from engine.model.records import Labels
from engine.ports import Chunk, Piece

JOINED_BYTES = 256 * 1024


class Origin(Struct, frozen=True, eq=False):
    """A source, the stream it is read out of, and its labels. Two are one origin when they are one object."""

    source_id: str
    stream: str
    labels: Labels


class Joining:
    """The records that the next one may join."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._parts: list[bytes] = []
        self._pieces: list[Piece] = []
        self._bytes = self._end = 0

    def add(
        self, origin: Origin, data: bytes, sizes: Sequence[int], starts: Sequence[int], end: int, taken_ms: Sequence[int | None]
    ) -> Chunk | None:
        """Take the lines of records that follow each other in their stream: so many bytes of each; they begin at the positions
        `starts`, and at `end` the next one does. Return what was held if they do not join it."""
        done = None
        if origin is not self._origin or starts[0] != self._end or self._bytes + len(data) > JOINED_BYTES:
            done = self.rest()
            self._origin = origin
        self._pieces.extend(zip(accumulate(sizes, initial=self._bytes), starts, taken_ms, strict=False))
        self._parts.append(data)
        self._bytes += len(data)
        self._end = end
        return done

    def rest(self) -> Chunk | None:
        """Return what is held, if anything, and hold nothing."""
        done, origin = None, self._origin
        if origin is not None:
            start, data = self._pieces[0][1], b"".join(self._parts)
            done = Chunk(origin.source_id, start, data, 0, None, origin.labels, origin.stream, self._end, self._pieces)
        self._origin, self._parts, self._pieces, self._bytes = None, [], [], 0
        return done
