"""Where each partition of a topic stands, what is read next, and in which order: the offset of KafkaSource. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# A line's position in its partition: the record's offset, and below it the byte within the record. A record of more bytes than
# this (the broker's default bound is 1 MiB) has positions that run into the next record's; nothing but their order needs them.
RECORD_POSITIONS = 1 << 24


@dataclass(frozen=True, slots=True)
class Position:
    """A partition is read up to offset `at` (exclusive) of `end`, the last stable offset when that was decided."""

    at: int
    end: int


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [start, end) of a partition: any of them may be control records, compacted away, or aborted."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets [start, end) of a partition that can never be read, and why. Empty when nobody knows how many there were."""

    partition: int
    start: int
    end: int
    why: str


Positions = Mapping[int, Position]


def advanced(
    before: Positions, earliest: Mapping[int, int], ends: Mapping[int, int], max_records: int | None = None
) -> dict[int, Position]:
    """Return how far the next batch reaches: every partition by its share of `max_records`, all of it when None.

    A partition that was not known starts at 0. One that is not in `ends` (its topic is gone) stays where it is. One whose log
    ends before what was read of it is another one of the same name, and starts again. `earliest` is where each log begins now:
    offsets before it count for nothing, so that a lost range is passed in one batch.
    """
    begins = {p: max(_begin(before.get(p), end), min(earliest.get(p, 0), end)) for p, end in ends.items()}
    total = sum(ends[p] - begin for p, begin in begins.items())
    wanted = total if max_records is None else min(total, max_records)
    moved = {p: Position(begin + _share(ends[p] - begin, wanted, total), ends[p]) for p, begin in begins.items()}
    return dict(sorted({**before, **moved}.items()))


def ranges(before: Positions, after: Positions) -> list[Range]:
    """Return what is to be read between two offsets."""
    found = [Range(p, _begin(before.get(p), position.at), position.at) for p, position in after.items()]
    return [each for each in found if each.start < each.end]


def recreated(before: Positions, after: Positions) -> list[Lost]:
    """Return the partitions whose log ended before what was read of it, when `after` was decided."""
    why = "the log now ends before what was read of it: the topic was made anew or cut, and is read from its beginning"
    pairs = [(p, before[p].at, position.at) for p, position in after.items() if p in before]
    return [Lost(p, read, read, why) for p, read, at in pairs if at < read]


def _begin(known: Position | None, end: int) -> int:
    return known.at if known is not None and known.at <= end else 0


def _share(available: int, wanted: int, total: int) -> int:
    return -(-available * wanted // total) if total else 0
