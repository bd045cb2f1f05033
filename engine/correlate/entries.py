"""Entries: what a rule counts, in order of time, made of the matches of one entity: collapsed, each distinct thing once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.correlate.tally import Occurrence, Tally, name_of

Part = Occurrence | Tally
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something counted `weight` times at `at`, made of `parts` of `rule_id` that lie between `first` and `last`.

    `value` is what a value_count tells its entries apart by.
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
    """Return what the matches of one rule count for; with `collapse_s`, matches within it of the first of an entry join that.

    Of those with the same `distinct` captures, which several sources may print, the first counts. A sum that knows its cells is an entry for each of them; one that does not counts for as many as can lie between its ends.
    """
    collapse = timedelta(seconds=collapse_s)
    sums = (entry for part in parts if isinstance(part, Tally) for entry in _of_sum(part, collapse))
    singles = sorted((part for part in parts if isinstance(part, Occurrence)), key=lambda each: (each.at, each.event_id))
    once = _once(singles, distinct)
    groups = _collapsed(once, collapse) if collapse else ([each] for each in once)
    return [replace(entry, rule_id=rule_id, value=value) for entry in (*sums, *map(_of_group, groups))]


def placed(parts: Iterable[Part], at: datetime | None) -> Iterator[Part]:
    """Yield undated matches moved to `at`, the last dated one of their entity; left at ingest time when there is none."""
    for part in parts:
        if at is None:
            yield part
        elif isinstance(part, Occurrence):
            yield replace(part, at=at)
        else:
            head, tail = ([(at, event_id) for _, event_id in stamps] for stamps in (part.head, part.tail))
            yield replace(part, first=at, last=at, head=head, tail=tail, cells=None)


def newest(parts: Iterable[Part]) -> datetime | None:
    """Return the time of the last of `parts`."""
    return max((part.at if isinstance(part, Occurrence) else part.last for part in parts), default=None)


def _of_sum(part: Tally, collapse: timedelta) -> Iterator[Entry]:
    if part.cells is None:
        weight = min(part.count, 1 + (part.last - part.first) // collapse) if collapse else part.count
        yield Entry(part.first, part.last, part.last, weight, (part,))
        return
    begun: datetime | None = None
    for begin, end, count in part.cells.spans():
        at = max(begin, part.first)
        if not collapse:
            yield Entry(at, at, min(end - _INSTANT, part.last), count, (part,))
        elif begun is None or at - begun > collapse:
            begun = at
            yield Entry(at, at, min(end - _INSTANT, part.last), 1, (part,))


def _once(singles: Iterable[Occurrence], distinct: Sequence[str]) -> Iterator[Occurrence]:
    seen: set[str] = set()
    for each in singles:
        name = name_of(each, distinct)
        if name not in seen:
            seen.add(name)
            yield each


def _collapsed(singles: Iterable[Occurrence], collapse: timedelta) -> Iterator[list[Occurrence]]:
    group: list[Occurrence] = []
    for each in singles:
        if group and each.at - group[0].at > collapse:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _of_group(group: list[Occurrence]) -> Entry:
    return Entry(group[0].at, group[0].at, group[-1].at, 1, tuple(group))
