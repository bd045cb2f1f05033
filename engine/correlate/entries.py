"""Entries: what a rule counts, in order of time, made of the matches of one entity: collapsed, each distinct thing once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.aggregate import Aggregate, Occurrence, name_of, when

Part = Occurrence | Aggregate
EntryKind = tuple[str, str]  # the rule that was matched, and the value that a value_count tells its entries apart by


class Entry(Struct, frozen=True):
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

    A sum that knows its cells is an entry for each of them; one that does not counts for as many as can lie between its ends.
    Of single matches with the same `distinct` captures, which several sources may print, the first counts.
    """
    collapse, kind = timedelta(seconds=collapse_s), (rule_id, value)
    every = list(_once(parts, distinct)) if distinct else list(parts)
    sums = [part for part in every if isinstance(part, Aggregate)]
    singles = sorted((part for part in every if isinstance(part, Occurrence)), key=when)
    whole = [_of_sum(part, collapse, kind) for part in sums if part.cells is None]
    some = [Entry(at, at, last, count, (part,), *kind) for part in sums for at, last, count in part.moments]
    some += [Entry(part.at, part.at, part.at, 1, (part,), *kind) for part in singles]
    some.sort(key=attrgetter("at"))
    return whole + [_joined(group) for group in _collapsed(some, collapse)] if collapse else whole + some


def placed(parts: Iterable[Part], at: datetime | None) -> Iterator[Part]:
    """Yield undated matches moved to `at`, the last dated one of their entity; left at ingest time when there is none."""
    for part in parts:
        if at is None:
            yield part
        elif isinstance(part, Occurrence):
            yield replace(part, at=at)
        else:
            yield replace(part, first=at, last=at, outer=sorted((at, event_id) for _, event_id in part.outer), cells=None)


def newest(parts: Iterable[Part]) -> datetime | None:
    """Return the time of the last of `parts`."""
    return max((part.at if isinstance(part, Occurrence) else part.last for part in parts), default=None)


def _once(parts: Iterable[Part], distinct: Sequence[str]) -> Iterator[Part]:
    every = list(parts)
    yield from (part for part in every if isinstance(part, Aggregate))
    first: dict[str, Occurrence] = {}
    for each in sorted((part for part in every if isinstance(part, Occurrence)), key=when):
        first.setdefault(name_of(each, distinct), each)
    yield from first.values()


def _of_sum(part: Aggregate, collapse: timedelta, kind: EntryKind) -> Entry:
    weight = min(part.count, 1 + (part.last - part.first) // collapse) if collapse else part.count
    return Entry(part.first, part.last, part.last, weight, (part,), *kind)


def _collapsed(some: Iterable[Entry], collapse: timedelta) -> Iterator[list[Entry]]:
    group: list[Entry] = []
    for each in some:
        if group and each.at - group[0].at > collapse:  # cells begin early, so a sum counts for no more than its matches did
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _joined(group: list[Entry]) -> Entry:
    first = group[0]
    if len(group) == 1 and first.weight == 1 and first.first == first.at:
        return first
    parts = {id(part): part for entry in group for part in entry.parts}
    return Entry(first.at, first.at, max(entry.last for entry in group), 1, tuple(parts.values()), first.rule_id, first.value)
