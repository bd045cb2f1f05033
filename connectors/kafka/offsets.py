"""Where each partition of a topic stands, what is read next, and in which order: the offset of KafkaSource. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

# A line's position in its partition: the record's offset, and below it the byte within the record. A record of more bytes than
# this (the broker's default bound is 1 MiB) has positions that run into the next record's; nothing but their order needs them.
RECORD_POSITIONS = 1 << 24


class PartitionPosition(Struct, frozen=True):
    """A partition is read up to offset `at` (exclusive) of `end`, the last stable offset when that was decided.

    `topic` is the id of the topic that was read: one that is made anew under the same name has another.
    """

    at: int
    end: int
    topic: str = ""


class OffsetRange(Struct, frozen=True):
    """Offsets [start, end) of a partition: any of them may be control records, compacted away, or aborted."""

    partition: int
    start: int
    end: int


class LostOffsets(Struct, frozen=True):
    """Offsets [start, end) of a partition that can never be read, and why. Empty when nobody knows how many there were."""

    partition: int
    start: int
    end: int
    why: str


PartitionPositions = Mapping[int, PartitionPosition]

_ANEW = "the topic was deleted and made anew, and is read from its beginning; what the old one still got is gone"
_CUT = "the log now ends before what was read of it: the topic was made anew or cut, and is read from its beginning"


def advanced(
    before: PartitionPositions,
    earliest: Mapping[int, int],
    ends: Mapping[int, int],
    max_records: int | None = None,
    topic: str = "",
) -> dict[int, PartitionPosition]:
    """Return how far the next batch reaches in the topic of the id `topic`: every partition by its share of `max_records`, all
    of it when None.

    A partition that was not known starts at 0. One that is not in `ends` stays where it is. One of another topic of the same
    name, or whose log ends before what was read of it, starts again. `earliest` is where each log begins now: offsets before it
    count for nothing, so that a lost range is passed in one batch.
    """
    now = {p: PartitionPosition(end, end, topic) for p, end in ends.items()}
    begins = {p: max(_begin(before.get(p), end), min(earliest.get(p, 0), end.at)) for p, end in now.items()}
    total = sum(ends[p] - begin for p, begin in begins.items())
    wanted = total if max_records is None else min(total, max_records)
    moved = {
        p: PartitionPosition(begin + _share(ends[p] - begin, wanted, total), ends[p], topic) for p, begin in begins.items()
    }
    return dict(sorted({**before, **moved}.items()))


def ranges(before: PartitionPositions, after: PartitionPositions) -> list[OffsetRange]:
    """Return what is to be read between two offsets."""
    found = [OffsetRange(p, _begin(before.get(p), position), position.at) for p, position in after.items()]
    return [each for each in found if each.start < each.end]


def recreated(before: PartitionPositions, after: PartitionPositions) -> list[LostOffsets]:
    """Return the partitions that were others than those read, when `after` was decided; of empty ones nothing is lost."""
    pairs = [(p, before[p], position) for p, position in after.items() if p in before and before[p].end > 0]
    return [LostOffsets(p, old.at, old.at, why) for p, old, new in pairs if (why := _broken(old, new))]


def _begin(known: PartitionPosition | None, now: PartitionPosition) -> int:
    return 0 if known is None or _broken(known, now) else known.at


def _broken(known: PartitionPosition, now: PartitionPosition) -> str:
    """Return why `now` does not go on from `known`; empty when it does."""
    if known.topic and now.topic and known.topic != now.topic:
        return _ANEW
    return _CUT if now.at < known.at else ""


def _share(available: int, wanted: int, total: int) -> int:
    return -(-available * wanted // total) if total else 0
