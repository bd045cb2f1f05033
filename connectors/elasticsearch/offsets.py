"""The offset of the strategy `sequence`: the last operation read of each shard, and the operations to read next. Pure.

An index is identified by its uuid: an index that is created again under the same name has another. A shard may be rewound
under the same uuid: by a snapshot that is restored over it, or by a stale copy that becomes its primary. Then the history of
its operations has another uuid, or its highest number is lower than one that was read. Which of its numbers still stand for
the same operations is unknown, so a rewound shard is read from its first operation. Source: Elasticsearch,
Engine.HISTORY_UUID_KEY and RestoreService.

An offset is stored with every batch, so it is small: of an index that is read to its end it has a short id, and for each shard
a number and a mark of its history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

ID_CHARS = 12  # of a uuid: 72 bits
MARK_CHARS = 4  # of a history's uuid: 24 bits
NO_MARK = "?" * MARK_CHARS  # of a history that is unknown


class IndexPosition(Struct, frozen=True, array_like=True, omit_defaults=True):
    """The last operation read of each shard of an index, -1 before the first.

    If more operations existed when this was planned, `ends` are the last ones of each shard, and `name` is the name of the
    index. Both are empty for an index that is read to its end. `marks` is the text of the marks of all shards' histories; empty
    when none is known.
    """

    at: tuple[int, ...]
    ends: tuple[int, ...] = ()
    name: str = ""
    marks: str = ""

    @property
    def behind(self) -> int:
        """The number of operations that were not read yet."""
        return sum(self.ends) - sum(self.at) if self.ends else 0

    def mark(self, shard: int) -> str:
        """Return the mark of a shard's history."""
        return self.marks[shard * MARK_CHARS : (shard + 1) * MARK_CHARS] or NO_MARK


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
    when no node has the primary now.

    `highest`: the highest number of each primary; None, or no items, where it is unknown. `histories`: the uuid of the history
    of each primary; empty, or no items, where it is unknown.
    """

    name: str
    uuid: str
    at: tuple[int | None, ...]
    created_ms: int = 0
    is_copy: bool = False
    highest: tuple[int | None, ...] = ()
    histories: tuple[str, ...] = ()

    def mark(self, shard: int) -> str:
        """Return the mark of a shard's history."""
        return self.histories[shard][:MARK_CHARS].ljust(MARK_CHARS, "?") if shard < len(self.histories) else NO_MARK

    def is_rewound(self, shard: int, position: IndexPosition) -> bool:
        """Return whether the operations of a shard may be others than those that were read up to `position`."""
        mark, mark_before = self.mark(shard), position.mark(shard)
        if NO_MARK not in (mark, mark_before) and mark != mark_before:
            return True
        highest = self.highest[shard] if shard < len(self.highest) else None
        return highest is not None and highest < position.at[shard]


class SequenceRange(Struct, frozen=True):
    """Operations (after, to] of a shard. Not every number has a document. `mark`: of their history."""

    index: str
    id: str  # of the index, short
    shard: int
    after: int
    to: int
    mark: str = NO_MARK

    def is_of(self, now: Checkpoints) -> bool:
        """Return whether the operations still exist and have the same history, given the present checkpoints of their index."""
        marks = self.mark, now.mark(self.shard)
        highest = now.highest[self.shard] if self.shard < len(now.highest) else None
        return (NO_MARK in marks or marks[0] == marks[1]) and (highest is None or highest >= self.to)


class LostOperations(Struct, frozen=True):
    """Operations (after, to] of a shard that can never be read, and why."""

    index: str
    shard: int
    after: int
    to: int
    why: str


DELETED = "the index was deleted before all of it was read"
REWOUND = "the shard was rewound before all of it was read, by a snapshot or a stale copy"


def short(uuid: str) -> str:
    """Return the short id of an index, by which offsets refer to it."""
    return uuid[:ID_CHARS]


def at_end(checkpoints: Sequence[Checkpoints]) -> SequenceOffset:
    """Return the offset at which all present operations have been read."""
    return SequenceOffset({short(index.uuid): _position(index, _numbers(index, ())) for index in checkpoints})


def at_beginning(checkpoints: Sequence[Checkpoints]) -> SequenceOffset:
    """Return the offset at which nothing has been read."""
    return SequenceOffset({short(index.uuid): _position(index, (-1,) * len(index.at)) for index in checkpoints})


def since(checkpoints: Sequence[Checkpoints], first: Callable[[Checkpoints, int], int | None]) -> SequenceOffset:
    """Return the offset just before the operation that `first` returns for each index and shard; None: at the end of the
    shard."""
    positions = {}
    for index in checkpoints:
        ends = _numbers(index, ())
        numbers = [first(index, shard) if end >= 0 else None for shard, end in enumerate(ends)]
        at = tuple(end if number is None else number - 1 for number, end in zip(numbers, ends, strict=True))
        positions[short(index.uuid)] = _position(index, at)
    return SequenceOffset(positions)


def advanced(
    before: SequenceOffset, now: Sequence[Checkpoints], exists: frozenset[str], most: int | None = None
) -> SequenceOffset:
    """Return the end of the next batch: at most about `most` operations further (None: no limit), those of older indices first.

    A new index begins at its first operation, or at its end if it is a copy of another index. No position goes backwards:
    after a failover a checkpoint may be lower for a moment. Only a rewound shard begins again at its first operation. An index
    that is missing in `now` keeps its position as long as it is in `exists` (short ids): it is closed, or no node has it now. A
    deleted index leaves the offset.
    """
    positions = {id_: position for id_, position in before.indices.items() if id_ in exists}
    left = most
    reached: dict[str, IndexPosition] = {}
    read: dict[str, str] = {}
    advance = 0
    for index in sorted(now, key=lambda index: (index.created_ms, index.name)):
        id_ = short(index.uuid)
        position = positions.get(id_) or _begin(index)
        starts = tuple(-1 if index.is_rewound(shard, position) else at for shard, at in enumerate(position.at))
        ends = _numbers(index, starts)
        at = ends if left is None else _within(starts, ends, left)
        moved = sum(at) - sum(starts)
        left = None if left is None else max(0, left - moved)
        advance += moved
        if moved:
            read[id_] = index.name
        marks = _marks(index, position)
        reached[id_] = IndexPosition(at, marks=marks) if at == ends else IndexPosition(at, ends, index.name, marks)
    indices = {id_: reached.get(id_, position) for id_, position in {**positions, **reached}.items()}
    lost = sum(entry.to - entry.after for entry in lost_operations(before, SequenceOffset(indices)))
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
        ended = replace(position, at=at, ends=(), name="") if at == position.ends else replace(position, at=at)
        after = replace(after, indices={**after.indices, id_: ended}, place=after.place + advance)
    return after


def ranges(before: SequenceOffset, after: SequenceOffset) -> list[SequenceRange]:
    """Return the ranges to read between two successive offsets."""
    return [
        SequenceRange(name, id_, shard, start, end, after.indices[id_].mark(shard))
        for id_, name in after.read.items()
        for shard, (start, end) in enumerate(zip(_start(before, after, id_), after.indices[id_].at, strict=True))
        if start < end
    ]


def lost_operations(before: SequenceOffset, after: SequenceOffset) -> list[LostOperations]:
    """Return the unread operations of the indices that were deleted, and of the shards that were rewound to below them, between
    two successive offsets."""
    return [
        LostOperations(position.name, shard, at, end, why)
        for id_, position in before.indices.items()
        for shard, end in enumerate(position.ends)
        for at, why in [_read_or_there(position, after.indices.get(id_), shard)]
        if at < end
    ]


def _read_or_there(before: IndexPosition, after: IndexPosition | None, shard: int) -> tuple[int, str]:
    """Return the last operation of a shard that was read or can still be read, and the reason why no later one can."""
    if after is None:
        return before.at[shard], DELETED
    if _is_rewound(before, after, shard):
        return max(before.at[shard], (after.ends or after.at)[shard]), REWOUND
    return before.ends[shard], ""


def _is_rewound(before: IndexPosition, after: IndexPosition, shard: int) -> bool:
    """Return whether a shard begins again between two successive offsets."""
    marks = before.mark(shard), after.mark(shard)
    return after.at[shard] < before.at[shard] or (NO_MARK not in marks and marks[0] != marks[1])


def _begin(index: Checkpoints) -> IndexPosition:
    return _position(index, _numbers(index, ()) if index.is_copy else (-1,) * len(index.at))


def _position(index: Checkpoints, at: tuple[int, ...]) -> IndexPosition:
    return IndexPosition(at, marks=_marks(index, IndexPosition(at)))


def _marks(index: Checkpoints, before: IndexPosition) -> str:
    """Return the marks of all shards as one text; a shard whose history is unknown now keeps its mark."""
    marks = [index.mark(shard) for shard in range(len(index.at))]
    marks = [before.mark(shard) if mark == NO_MARK else mark for shard, mark in enumerate(marks)]
    return "".join(marks) if any(mark != NO_MARK for mark in marks) else ""


def _start(before: SequenceOffset, after: SequenceOffset, id_: str) -> tuple[int, ...]:
    """Return the last operation of each shard before a batch."""
    position, ended = before.indices.get(id_), after.indices[id_]
    if position is None:
        return (-1,) * len(ended.at)
    return tuple(-1 if _is_rewound(position, ended, shard) else at for shard, at in enumerate(position.at))


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
