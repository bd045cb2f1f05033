"""Tallies: what is remembered of many matches once they are no longer kept one by one.

A tally is a commutative sum: adding the same matches in any order, in any grouping, gives the same tally.
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

# they tell where a line was read, not what it is about
_NOT_OF_THE_EMITTER = frozenset(("source", *STAMP_LABELS, SPEAKS_FOR, REPEATED))

EventTime = tuple[datetime, str]  # time and id of an event
Figure = int | float  # a whole one stays one when it is stored, or the same alert would look like another


class Occurrence(Struct, frozen=True, array_like=True):
    """One match as correlation keeps it. `labels` are the emitter's, without where the line was read."""

    at: datetime
    event_id: str
    source_id: str
    captures: Mapping[str, Value] = {}
    labels: Labels = NO_LABELS


when: Callable[[Occurrence], EventTime] = attrgetter("at", "event_id")  # what occurrences are in order by


def occurrence(match: Match) -> Occurrence:
    """Return what correlation keeps of `match`."""
    labels = {name: value for name, value in match.labels.items() if name not in _NOT_OF_THE_EMITTER}
    return Occurrence(match.at, match.event_id, match.source_id, match.captures, labels)


def name_of(occurrence: Occurrence, distinct: Sequence[str]) -> str:
    """Return what an occurrence counts as: its values of the captures `distinct`, or its event where there are none."""
    values = [occurrence.captures.get(name) for name in distinct] if distinct else [None]
    return occurrence.event_id if None in values else repr(values)


class FieldStats(Struct, array_like=True):
    """The values captured under one name: the distinct ones by their earliest time, and figures of those that are numbers."""

    values: list[tuple[datetime, Value]] = field(default_factory=list)
    first: tuple[datetime, Figure] | None = None
    last: tuple[datetime, Figure] | None = None
    low: Figure = 0
    high: Figure = 0
    total: Figure = 0

    def merge(self, other: FieldStats) -> None:
        """Add everything `other` gathered."""
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
        """Return what an alert says of these values."""
        values = tuple(value for _, value in self.values)
        if self.first is None or self.last is None:
            return Capture(values)
        return Capture(values, self.first[1], self.last[1], self.low, self.high, self.total)

    def _is_full(self, at: datetime) -> bool:
        """Return whether a value of that time comes too late to be one of the distinct ones."""
        return len(self.values) >= MAX_VALUES and self.values[-1][0] < at

    def _note(self, at: datetime, value: Value) -> None:
        for position, (known_at, known) in enumerate(self.values):
            if known == value:
                if known_at <= at:
                    return
                del self.values[position]
                break
        self.values.append((at, value))
        self.values.sort(key=lambda stamped: (stamped[0], str(stamped[1])))
        del self.values[MAX_VALUES:]


class Aggregate(Struct, array_like=True, dict=True):
    """The sum of matches: how many, from when to when, labels on which all agree, captures, sources, outermost events.

    Nothing is added any more once it has been asked for its `moments`.
    """

    count: int
    first: datetime
    last: datetime
    labels: dict[str, str] = field(default_factory=dict)
    captures: dict[str, FieldStats] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    outer: list[EventTime] = field(default_factory=list)  # the earliest and the latest events, by time
    cells: TimeHistogram | None = None  # when they happened, for windows over them; None where nobody asks

    def merge(self, *others: Aggregate) -> None:
        """Add everything `others` counted."""
        for other in others:
            self._add(other)
        self._came_from(source for other in others for source in other.sources)
        self._bound(sorted({*self.outer, *chain.from_iterable(other.outer for other in others)}))

    def _add(self, other: Aggregate) -> None:
        self.count += other.count
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self._agree(other.labels)
        for name, gathered in other.captures.items():
            self.captures.setdefault(name, FieldStats()).merge(gathered)
        if self.cells is not None and other.cells is not None:
            self.cells.merge(other.cells)

    @cached_property
    def moments(self) -> Sequence[tuple[datetime, datetime, int]]:
        """When they happened, as far as that is known: first, last and count of each cell, in order of time."""
        spans = self.cells.spans() if self.cells is not None else ()
        return [(max(begin, self.first), min(end - _INSTANT, self.last), count) for begin, end, count in spans]

    def events(self) -> tuple[str, ...]:
        """Return the ids of the outermost events, by time."""
        return tuple(event_id for _, event_id in self.outer)

    def evidence(self) -> tuple[str, ...]:
        """Return the ids of the first three and the last three events, by time."""
        return tuple(event_id for _, event_id in sorted({*self.outer[:3], *self.outer[-3:]}))

    def captured(self) -> dict[str, Capture]:
        """Return what an alert says was captured, by name."""
        return {name: self.captures[name].capture() for name in sorted(self.captures)}

    def _agree(self, labels: Labels) -> None:
        self.labels = {name: value for name, value in self.labels.items() if labels.get(name) == value}

    def _came_from(self, sources: Iterable[str]) -> None:
        self.sources = sorted({*self.sources, *sources})[:MAX_SOURCES]

    def _bound(self, some: list[EventTime]) -> None:
        """Take the outermost of events that are given in order of time, each once."""
        self.outer = some if len(some) <= 2 * MAX_EVENTS else [*some[:MAX_EVENTS], *some[-MAX_EVENTS:]]


def gathered(stamped: Sequence[tuple[datetime, Value]]) -> FieldStats:
    """Return what was captured under one name, given in order of time."""
    made = FieldStats(_earliest(stamped))
    figures = [(at, value) for at, value in stamped if not isinstance(value, str)]
    if figures:
        numbers = [number for _, number in figures]
        made.first, made.last = min(figures), max(figures)
        made.low, made.high, made.total = min(numbers), max(numbers), sum(numbers)
    return made


def _earliest(stamped: Iterable[tuple[datetime, Value]]) -> list[tuple[datetime, Value]]:
    """Return each value when it came first, the MAX_VALUES earliest; given in order of time."""
    first: dict[Value, datetime] = {}
    newest = None
    for at, value in stamped:
        if value in first:
            continue
        if newest is not None and newest < at and len(first) >= MAX_VALUES:
            break
        first[value] = newest = at
    return sorted(((at, value) for value, at in first.items()), key=lambda each: (each[0], str(each[1])))[:MAX_VALUES]


def tally(occurrences: Iterable[Occurrence], timed: bool = False) -> Aggregate:
    """Return the sum of `occurrences`, with their cells if `timed`. Raises ValueError when there are none."""
    ordered = sorted(occurrences, key=when)
    if not ordered:
        raise ValueError("nothing to sum up")
    made = Aggregate(len(ordered), ordered[0].at, ordered[-1].at, dict(ordered[0].labels))
    captured: dict[str, list[tuple[datetime, Value]]] = {}
    for each in ordered:
        for name, value in each.captures.items():
            captured.setdefault(name, []).append((each.at, value))
        if each.labels != made.labels:
            made._agree(each.labels)
    made.captures = {name: gathered(stamped) for name, stamped in captured.items()}
    made._came_from({each.source_id for each in ordered})
    made._bound(list(dict.fromkeys(map(when, ordered))))
    made.cells = cells(each.at for each in ordered) if timed else None
    return made


def total(parts: Iterable[Occurrence | Aggregate]) -> Aggregate:
    """Return the sum of single occurrences and earlier sums. Raises ValueError when there are none."""
    every = list(parts)
    singles = [part for part in every if isinstance(part, Occurrence)]
    sums = [part for part in every if isinstance(part, Aggregate)]
    if not sums:
        return tally(singles)
    first, *others = [*([tally(singles)] if singles else []), *sums]
    return added(first, *others)


def added(first: Aggregate, *others: Aggregate, timed: bool = False) -> Aggregate:
    """Return the sum of tallies, which stay as they are; with their cells if `timed`."""
    made = Aggregate(0, first.first, first.last, dict(first.labels), cells=TimeHistogram() if timed else None)
    made.merge(first, *others)
    return made
