"""The positions in the partitions of a topic, and which records a batch reads: the offset of KafkaSource. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

# The position of a line in its partition is the record's offset times this, plus the byte within the record. The positions in a
# record of more bytes than this (the broker's default bound is 1 MiB) overlap those of the next one, which only affects order.
RECORD_POSITIONS = 1 << 24


class PartitionPosition(Struct, frozen=True):
    """The position in a partition: it is read up to offset `at` (exclusive). `end` was the last stable offset when that was
    decided.

    `topic` is the id of the topic that was read. A topic that is created again under the same name has another.
    """

    at: int
    end: int
    topic: str = ""


class OffsetRange(Struct, frozen=True):
    """Offsets [start, end) of a partition. Any of them may be a control record, compacted away, or aborted."""

    partition: int
    start: int
    end: int


class LostOffsets(Struct, frozen=True):
    """Offsets [start, end) of a partition that can never be read, and why. `start` and `end` are equal when it is not known how
    many are lost."""

    partition: int
    start: int
    end: int
    why: str


PartitionPositions = Mapping[int, PartitionPosition]

_RECREATED = "the topic was deleted and created again, and is read from its beginning; unread records of the old one are gone"
_CUT = "the log now ends before the offset it was read to: the topic was created again or cut, and is read from its beginning"


def advanced(
    before: PartitionPositions,
    earliest: Mapping[int, int],
    ends: Mapping[int, int],
    max_records: int | None = None,
    topic: str = "",
) -> dict[int, PartitionPosition]:
    """Return the positions at the end of the next batch, in the order of partitions.

    A new partition starts at 0. One that is not in `ends` keeps its position. One of another topic of the same name, or whose
    log ends before its position, starts again at 0.

    Args:
        earliest: the first offset of each log now. Offsets before it do not count against `max_records`, so a lost range is
            passed in one batch.
        ends: the last stable offset of each log.
        max_records: divided among the partitions by how much they have; None: everything is read.
        topic: the id of the topic now.
    """
    now = {p: PartitionPosition(end, end, topic) for p, end in ends.items()}
    begins = {p: max(_begin(before.get(p), end), min(earliest.get(p, 0), end.at)) for p, end in now.items()}
    total = sum(ends[p] - begin for p, begin in begins.items())
    limit = total if max_records is None else min(total, max_records)
    moved = {p: PartitionPosition(begin + _share(ends[p] - begin, limit, total), ends[p], topic) for p, begin in begins.items()}
    return dict(sorted({**before, **moved}.items()))


def ranges(before: PartitionPositions, after: PartitionPositions) -> list[OffsetRange]:
    """Return the ranges to read between two positions; empty ones are left out."""
    spans = [OffsetRange(p, _begin(before.get(p), position), position.at) for p, position in after.items()]
    return [span for span in spans if span.start < span.end]


def recreated(before: PartitionPositions, after: PartitionPositions) -> list[LostOffsets]:
    """Return a loss for every partition that `after` has to read from its beginning again, since the topic was created again or
    the log was cut. A partition that was empty has none."""
    pairs = [(p, before[p], position) for p, position in after.items() if p in before and before[p].end > 0]
    return [LostOffsets(p, old.at, old.at, why) for p, old, new in pairs if (why := _broken(old, new))]


def _begin(before: PartitionPosition | None, now: PartitionPosition) -> int:
    return 0 if before is None or _broken(before, now) else before.at


def _broken(before: PartitionPosition, now: PartitionPosition) -> str:
    """Return why `now` does not continue `before`; empty when it does."""
    if before.topic and now.topic and before.topic != now.topic:
        return _RECREATED
    return _CUT if now.at < before.at else ""


def _share(available: int, limit: int, total: int) -> int:
    return -(-available * limit // total) if total else 0
