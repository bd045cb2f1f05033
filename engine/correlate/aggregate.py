"""Aggregates: sums of matches, for matches that are no longer kept one by one.

Adding is commutative and associative: the same matches in any order and grouping give the same aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from operator import attrgetter

from msgspec import Struct, field

from engine.correlate.time_histogram import TimeHistogram, cells
from engine.model.incidents import Capture
from engine.model.matches import Match, Value
from engine.model.records import NO_LABELS, REPEATED, SPEAKS_FOR, STAMP_LABELS, Labels

MAX_VALUES = 10
MAX_SOURCES = 10
MAX_EVENTS = 25  # of the earliest, and of the latest
_INSTANT = timedelta(microseconds=1)

# labels that say where a line was read, not what it is about
_NOT_OF_THE_EMITTER = frozenset(("source", *STAMP_LABELS, SPEAKS_FOR, REPEATED))

EventTime = tuple[datetime, str]  # time and id of an event
Figure = int | float  # an int must stay one when it is stored, or the same alert would differ


class Occurrence(Struct, frozen=True, array_like=True, gc=False):
    """One match in the state of a correlation. `labels` are those of the emitter, not those of the place where the line was
    read.

    It is stored: new fields are last and have defaults, so that earlier state can be read.
    """

    at: datetime
    event_id: str
    source_id: str
    captures: Mapping[str, Value] = {}
    labels: Labels = NO_LABELS
    items: tuple[str, ...] = ()


when: Callable[[Occurrence], EventTime] = attrgetter("at", "event_id")  # the sort key of occurrences


def occurrence(match: Match) -> Occurrence:
    """Return `match` as an occurrence."""
    labels = {name: value for name, value in match.labels.items() if name not in _NOT_OF_THE_EMITTER}
    return Occurrence(match.at, match.event_id, match.source_id, match.captures, labels, match.items)


def name_of(occurrence: Occurrence, distinct: Sequence[str]) -> str:
    """Return the name by which an occurrence counts once: its values of the captures `distinct`, else its event id."""
    values = [occurrence.captures.get(name) for name in distinct] if distinct else [None]
    return occurrence.event_id if None in values else repr(values)


class FieldStats(Struct, array_like=True, gc=False):
    """Statistics of the values captured under one name.

    Attributes:
        values: the MAX_VALUES earliest distinct values, each with its earliest time, in order of time.
        first: the earliest number, with its time; likewise `last`; None when no value is a number.
        low: the smallest number; likewise `high`, and `total`, the sum of all.
    """

    values: list[tuple[datetime, Value]] = field(default_factory=list)
    first: tuple[datetime, Figure] | None = None
    last: tuple[datetime, Figure] | None = None
    low: Figure = 0
    high: Figure = 0
    total: Figure = 0

    def merge(self, other: FieldStats) -> None:
        """Add the values of `other`."""
        for at, value in other.values:
            if self._is_full(at):
                break
            self._note(at, value)
        if other.first is None or other.last is None:
            return
        if self.first is None or self.last is None:
            self.first, self.last, self.low, self.high, self.total = other.first, other.last, other.low, other.high, other.total
            return
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.total += other.total

    def capture(self) -> Capture:
        """Return these statistics as the capture of an alert."""
        values = tuple(value for _, value in self.values)
        if self.first is None or self.last is None:
            return Capture(values)
        return Capture(values, self.first[1], self.last[1], self.low, self.high, self.total)

    def _is_full(self, at: datetime) -> bool:
        """Return whether a new value of that time is too late to be one of `values`."""
        return len(self.values) >= MAX_VALUES and self.values[-1][0] < at

    def _note(self, at: datetime, value: Value) -> None:
        for position, (earlier_at, earlier) in enumerate(self.values):
            if earlier == value:
                if earlier_at <= at:
                    return
                del self.values[position]
                break
        self.values.append((at, value))
        self.values.sort(key=lambda stamped: (stamped[0], str(stamped[1])))
        del self.values[MAX_VALUES:]


class Aggregate(Struct, array_like=True, dict=True):
    """The sum of matches. It must not be changed after `moments` was read, which is cached.

    Attributes:
        count: how many matches.
        first: the time of the earliest; likewise `last`.
        labels: labels on which all agree.
        captures: statistics by name of the capture.
        sources: the first MAX_SOURCES sources, sorted.
        outer: the MAX_EVENTS earliest and the MAX_EVENTS latest events, in order of time.
        cells: when they happened, for windows; None where no window needs it.
        items: the items that held in any of them, sorted; no more than the rule's expressions name.
    """

    count: int
    first: datetime
    last: datetime
    labels: dict[str, str] = field(default_factory=dict)
    captures: dict[str, FieldStats] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    outer: list[EventTime] = field(default_factory=list)
    cells: TimeHistogram | None = None
    items: list[str] = field(default_factory=list)

    def merge(self, *others: Aggregate) -> None:
        """Add the matches of `others`."""
        for other in others:
            self._add(other)
        self._add_sources(source for other in others for source in other.sources)
        self._set_outer(sorted({*self.outer, *chain.from_iterable(other.outer for other in others)}))

    def _add(self, other: Aggregate) -> None:
        self.count += other.count
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self._keep_common(other.labels)
        self._add_items(other.items)
        for name, stats in other.captures.items():
            self.captures.setdefault(name, FieldStats()).merge(stats)
        if self.cells is not None and other.cells is not None:
            self.cells.merge(other.cells)

    @cached_property
    def moments(self) -> Sequence[tuple[datetime, datetime, int]]:
        """The first time, last time and count of each cell, in order of time; empty without cells."""
        spans = self.cells.spans() if self.cells is not None else ()
        return [(max(begin, self.first), min(end - _INSTANT, self.last), count) for begin, end, count in spans]

    def events(self) -> tuple[str, ...]:
        """Return the ids of the outer events, in order of time."""
        return tuple(event_id for _, event_id in self.outer)

    def evidence(self) -> tuple[str, ...]:
        """Return the ids of the first three and the last three events, in order of time."""
        return tuple(event_id for _, event_id in sorted({*self.outer[:3], *self.outer[-3:]}))

    def captured(self) -> dict[str, Capture]:
        """Return the captures of an alert, by name, sorted."""
        return {name: self.captures[name].capture() for name in sorted(self.captures)}

    def _keep_common(self, labels: Labels) -> None:
        self.labels = {name: value for name, value in self.labels.items() if labels.get(name) == value}

    def _add_sources(self, sources: Iterable[str]) -> None:
        self.sources = sorted({*self.sources, *sources})[:MAX_SOURCES]

    def _add_items(self, items: Iterable[str]) -> None:
        self.items = sorted({*self.items, *items})

    def _set_outer(self, events: list[EventTime]) -> None:
        """Set the outer events from distinct events in order of time."""
        self.outer = events if len(events) <= 2 * MAX_EVENTS else [*events[:MAX_EVENTS], *events[-MAX_EVENTS:]]


def field_stats(values: Sequence[tuple[datetime, Value]]) -> FieldStats:
    """Return the statistics of the values captured under one name, which are in order of time."""
    stats = FieldStats(_earliest(values))
    figures = [(at, value) for at, value in values if not isinstance(value, str)]
    if figures:
        numbers = [number for _, number in figures]
        stats.first, stats.last = min(figures), max(figures)
        stats.low, stats.high, stats.total = min(numbers), max(numbers), sum(numbers)
    return stats


def _earliest(values: Iterable[tuple[datetime, Value]]) -> list[tuple[datetime, Value]]:
    """Return the MAX_VALUES earliest distinct values with their first time, of values in order of time."""
    first: dict[Value, datetime] = {}
    newest = None
    for at, value in values:
        if value in first:
            continue
        if newest is not None and newest < at and len(first) >= MAX_VALUES:
            break
        first[value] = newest = at
    return sorted(((at, value) for value, at in first.items()), key=lambda pair: (pair[0], str(pair[1])))[:MAX_VALUES]


def tally(occurrences: Iterable[Occurrence], timed: bool = False) -> Aggregate:
    """Return the sum of `occurrences`, with cells if `timed`. Raises ValueError when there are none."""
    ordered = sorted(occurrences, key=when)
    if not ordered:
        raise ValueError("no occurrences to sum")
    aggregate = Aggregate(len(ordered), ordered[0].at, ordered[-1].at, dict(ordered[0].labels))
    values_of: dict[str, list[tuple[datetime, Value]]] = {}
    for occurrence in ordered:
        for name, value in occurrence.captures.items():
            values_of.setdefault(name, []).append((occurrence.at, value))
        if occurrence.labels != aggregate.labels:
            aggregate._keep_common(occurrence.labels)
    aggregate.captures = {name: field_stats(values) for name, values in values_of.items()}
    aggregate._add_sources({occurrence.source_id for occurrence in ordered})
    aggregate._add_items(name for occurrence in ordered for name in occurrence.items)
    aggregate._set_outer(list(dict.fromkeys(map(when, ordered))))
    aggregate.cells = cells(occurrence.at for occurrence in ordered) if timed else None
    return aggregate


def total(parts: Iterable[Occurrence | Aggregate]) -> Aggregate:
    """Return the sum of occurrences and aggregates. Raises ValueError when there are none."""
    every = list(parts)
    singles = [part for part in every if isinstance(part, Occurrence)]
    sums = [part for part in every if isinstance(part, Aggregate)]
    if not sums:
        return tally(singles)
    first, *others = [*([tally(singles)] if singles else []), *sums]
    return added(first, *others)


def added(first: Aggregate, *others: Aggregate, timed: bool = False) -> Aggregate:
    """Return the sum of aggregates, which are not changed; with cells if `timed`."""
    aggregate = Aggregate(0, first.first, first.last, dict(first.labels), cells=TimeHistogram() if timed else None)
    aggregate.merge(first, *others)
    return aggregate
