"""Entries: the units that a rule counts for one entity, made of its matches: collapsed, and repeated ones counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.aggregate import Aggregate, Occurrence, name_of, when

Part = Occurrence | Aggregate
EntryKind = tuple[str, str]  # the rule, and the value that a value_count counts


class Entry(Struct, frozen=True, gc=False):
    """Matches that are counted `weight` times at the time `at`: `parts` of `rule_id` between `first` and `last`.

    `value` is the value that a value_count counts.
    """

    first: datetime
    at: datetime
    last: datetime
    weight: int
    parts: tuple[Part, ...]
    rule_id: str = ""
    value: str = ""


def entries(
    parts: Iterable[Part], collapse_s: float, rule_id: str = "", value: str = "", distinct: Sequence[str] = ()
) -> list[Entry]:
    """Return the entries of matches of one rule: of aggregates without cells first, then the others in order of time.

    An aggregate with cells makes an entry for each cell. One without makes a single entry, whose weight is the most that can
    lie between its ends.

    Args:
        collapse_s: matches within this time of the first match of an entry belong to it; 0: each is an entry.
        distinct: captures; of single matches with equal values, which several sources may print, only the first counts.
    """
    collapse, kind = timedelta(seconds=collapse_s), (rule_id, value)
    every = list(_once(parts, distinct)) if distinct else list(parts)
    sums = [part for part in every if isinstance(part, Aggregate)]
    singles = sorted((part for part in every if isinstance(part, Occurrence)), key=when)
    whole = [_of_aggregate(part, collapse, kind) for part in sums if part.cells is None]
    timed = [Entry(at, at, last, count, (part,), *kind) for part in sums for at, last, count in part.moments]
    timed += [Entry(part.at, part.at, part.at, 1, (part,), *kind) for part in singles]
    timed.sort(key=attrgetter("at"))
    return whole + [_joined(group) for group in _collapsed(timed, collapse)] if collapse else whole + timed


def placed(parts: Iterable[Part], at: datetime | None) -> Iterator[Part]:
    """Yield undated matches moved to `at`, the time of the last dated match of their entity.

    Without a dated match (None) they stay at the time when they were read.
    """
    for part in parts:
        if at is None:
            yield part
        elif isinstance(part, Occurrence):
            yield replace(part, at=at)
        else:
            yield replace(part, first=at, last=at, outer=sorted((at, event_id) for _, event_id in part.outer), cells=None)


def newest(parts: Iterable[Part]) -> datetime | None:
    """Return the time of the last match in `parts`; None when there are none."""
    return max((part.at if isinstance(part, Occurrence) else part.last for part in parts), default=None)


def _once(parts: Iterable[Part], distinct: Sequence[str]) -> Iterator[Part]:
    every = list(parts)
    yield from (part for part in every if isinstance(part, Aggregate))
    first: dict[str, Occurrence] = {}
    for occurrence in sorted((part for part in every if isinstance(part, Occurrence)), key=when):
        first.setdefault(name_of(occurrence, distinct), occurrence)
    yield from first.values()


def _of_aggregate(part: Aggregate, collapse: timedelta, kind: EntryKind) -> Entry:
    weight = min(part.count, 1 + (part.last - part.first) // collapse) if collapse else part.count
    return Entry(part.first, part.last, part.last, weight, (part,), *kind)


def _collapsed(ordered: Iterable[Entry], collapse: timedelta) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    for entry in ordered:
        if group and entry.at - group[0].at > collapse:  # cells begin early, so they count for no more than their matches
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _joined(group: list[Entry]) -> Entry:
    first = group[0]
    if len(group) == 1 and first.weight == 1 and first.first == first.at:
        return first
    parts = {id(part): part for entry in group for part in entry.parts}
    return Entry(first.at, first.at, max(entry.last for entry in group), 1, tuple(parts.values()), first.rule_id, first.value)
