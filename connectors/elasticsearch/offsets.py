"""The offset of the strategy `sequence`: the last operation read of each shard, and the operations to read next. Pure.

An index is identified by its uuid: an index that is created again under the same name has another. An offset is stored with
every batch, so it is small: of an index that is read to its end it has a short id and a number for each shard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

ID_CHARS = 12  # of a uuid: 72 bits


class IndexPosition(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The last operation read of each shard of an index, -1 before the first.

    If more operations existed when this was planned, `ends` are the last ones of each shard, and `name` is the name of the
    index. Both are empty for an index that is read to its end.
    """

    at: tuple[int, ...]
    ends: tuple[int, ...] = ()
    name: str = ""

    @property
    def behind(self) -> int:
        """The number of operations that were not read yet."""
        return sum(self.ends) - sum(self.at) if self.ends else 0


class SequenceOffset(Struct, frozen=True):
    """The positions of all indices by short id. `place` counts all operations that were ever read or lost. `read`: by short id,
    the names of the indices that the batch which ends here reads."""

    indices: Mapping[str, IndexPosition] = {}
    place: int = 0
    read: Mapping[str, str] = {}

    @property
    def behind(self) -> int:
        """The number of operations that existed when this was planned and were not read."""
        return sum(position.behind for position in self.indices.values())


class Checkpoints(Struct, frozen=True):
    """The last readable operation of each shard of an index: the global checkpoint of its primary; -1 without operations, None
    when no node has the primary now."""

    name: str
    uuid: str
    at: tuple[int | None, ...]
    created_ms: int = 0
    is_copy: bool = False


class SequenceRange(Struct, frozen=True):
    """Operations (after, to] of a shard. Not every number has a document."""

    index: str
    id: str  # of the index, short
    shard: int
    after: int
    to: int


class LostOperations(Struct, frozen=True):
    """Operations (after, to] of a shard that can never be read, and why."""

    index: str
    shard: int
    after: int
    to: int
    why: str


DELETED = "the index was deleted before all of it was read"


def short(uuid: str) -> str:
    """Return the short id of an index, by which offsets refer to it."""
    return uuid[:ID_CHARS]


def at_end(checkpoints: Sequence[Checkpoints]) -> SequenceOffset:
    """Return the offset at which all present operations have been read."""
    return SequenceOffset({short(index.uuid): IndexPosition(_numbers(index, ())) for index in checkpoints})


def at_beginning(checkpoints: Sequence[Checkpoints]) -> SequenceOffset:
    """Return the offset at which nothing has been read."""
    return SequenceOffset({short(index.uuid): IndexPosition((-1,) * len(index.at)) for index in checkpoints})


def since(checkpoints: Sequence[Checkpoints], first: Callable[[Checkpoints, int], int | None]) -> SequenceOffset:
    """Return the offset just before the operation that `first` returns for each index and shard; None: at the end of the
    shard."""
    positions = {}
    for index in checkpoints:
        ends = _numbers(index, ())
        numbers = [first(index, shard) if end >= 0 else None for shard, end in enumerate(ends)]
        positions[short(index.uuid)] = IndexPosition(
            tuple(end if number is None else number - 1 for number, end in zip(numbers, ends, strict=True))
        )
    return SequenceOffset(positions)


def advanced(
    before: SequenceOffset, now: Sequence[Checkpoints], exists: frozenset[str], most: int | None = None
) -> SequenceOffset:
    """Return the end of the next batch: at most about `most` operations further (None: no limit), those of older indices first.

    A new index begins at its first operation, or at its end if it is a copy of another index. No position goes backwards:
    after a failover a checkpoint may be lower for a moment. An index that is missing in `now` keeps its position as long as it
    is in `exists` (short ids): it is closed, or no node has it now. A deleted index leaves the offset.
    """
    positions = {id_: position for id_, position in before.indices.items() if id_ in exists}
    left = most
    reached: dict[str, IndexPosition] = {}
    read: dict[str, str] = {}
    advance = 0
    for index in sorted(now, key=lambda index: (index.created_ms, index.name)):
        id_ = short(index.uuid)
        start = positions.get(id_) or _begin(index)
        ends = _numbers(index, start.at)
        at = ends if left is None else _within(start.at, ends, left)
        moved = sum(at) - sum(start.at)
        left = None if left is None else max(0, left - moved)
        advance += moved
        if moved:
            read[id_] = index.name
        reached[id_] = IndexPosition(at) if at == ends else IndexPosition(at, ends, index.name)
    lost = sum(position.behind for id_, position in before.indices.items() if id_ not in exists)
    indices = {id_: reached.get(id_, position) for id_, position in {**positions, **reached}.items()}
    if not advance and not lost and _places(indices) == _places(before.indices):
        return replace(before, indices=indices) if indices != before.indices else before
    return SequenceOffset(dict(sorted(indices.items())), before.place + advance + lost, read)


Cut = Callable[[Sequence[SequenceRange], Sequence[int]], Sequence[int] | None]


def aligned(before: SequenceOffset, after: SequenceOffset, cut: Cut) -> SequenceOffset:
    """Return `after` with other ends in the indices of several shards that the batch reads in part.

    Args:
        cut: returns the last operation to read of each shard, given the unread range of each shard and the last planned
            operation of each; None: as planned.
    """
    for id_, name in after.read.items():
        position = after.indices[id_]
        if not position.ends or len(position.at) == 1:
            continue
        starts = _start(before, after, id_)
        shards = enumerate(zip(starts, position.ends, strict=True))
        numbers = cut([SequenceRange(name, id_, shard, start, end) for shard, (start, end) in shards], position.at)
        at = tuple(max(start, number) for start, number in zip(starts, numbers or position.at, strict=True))
        if at == starts:  # a batch that reads nothing would be planned without end
            continue
        advance = sum(at) - sum(position.at)
        ended = IndexPosition(at) if at == position.ends else IndexPosition(at, position.ends, name)
        after = replace(after, indices={**after.indices, id_: ended}, place=after.place + advance)
    return after


def ranges(before: SequenceOffset, after: SequenceOffset) -> list[SequenceRange]:
    """Return the ranges to read between two successive offsets."""
    return [
        SequenceRange(name, id_, shard, start, end)
        for id_, name in after.read.items()
        for shard, (start, end) in enumerate(zip(_start(before, after, id_), after.indices[id_].at, strict=True))
        if start < end
    ]


def lost_operations(before: SequenceOffset, after: SequenceOffset) -> list[LostOperations]:
    """Return the unread operations of the indices that were deleted between two successive offsets."""
    return [
        LostOperations(position.name, shard, at, end, DELETED)
        for id_, position in before.indices.items()
        if id_ not in after.indices
        for shard, (at, end) in enumerate(zip(position.at, position.ends, strict=False))
        if at < end
    ]


def _begin(index: Checkpoints) -> IndexPosition:
    return IndexPosition(_numbers(index, ()) if index.is_copy else (-1,) * len(index.at))


def _start(before: SequenceOffset, after: SequenceOffset, id_: str) -> tuple[int, ...]:
    positions = before.indices.get(id_)
    return positions.at if positions is not None else (-1,) * len(after.indices[id_].at)


def _numbers(index: Checkpoints, least: Sequence[int]) -> tuple[int, ...]:
    """Return the checkpoints of all shards, none below `least`."""
    positions = [-1 if at is None else at for at in index.at]
    return tuple(max(at, low) for at, low in zip(positions, least or [-1] * len(positions), strict=True))


def _within(at: Sequence[int], ends: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the last operation to read of each shard, whose share of `most` is proportional to its unread operations."""
    total = sum(ends) - sum(at)
    if total <= most:
        return tuple(ends)
    return tuple(start + -(-(end - start) * most // total) for start, end in zip(at, ends, strict=True))


def _places(indices: Mapping[str, IndexPosition]) -> Mapping[str, tuple[int, ...]]:
    return {id_: position.at for id_, position in indices.items()}
