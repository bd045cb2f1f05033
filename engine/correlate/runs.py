"""Runs: events with less than `gap` between neighbours, joined; only the ends of a run are stored."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

MAX_RUNS = 200


class TimedEvent(Protocol):
    """An event with a time and an id."""

    @property
    def at(self) -> datetime:
        """Return when it happened."""

    @property
    def event_id(self) -> str:
        """Return the id of its event."""


T = TypeVar("T", bound=TimedEvent)
Ends = tuple[T, T]  # the earliest and the latest of a run


class Runs(Generic[T]):
    """A sorted set of runs. The same events in any order, any number of times, give the same runs.

    Beyond `most` runs the two oldest are joined.
    """

    __slots__ = ("_gap", "_most", "_runs")

    def __init__(self, gap: timedelta, runs: Iterable[Ends[T]] = (), most: int = MAX_RUNS) -> None:
        self._gap, self._most = gap, most
        self._runs: list[Ends[T]] = []
        for first, last in runs:
            self._insert(first, last)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Ends[T]]:
        return iter(self._runs)

    def add(self, item: T) -> None:
        """Add an event."""
        self._insert(item, item)

    def merge(self, other: Runs[T]) -> None:
        """Add the runs of `other`."""
        for first, last in other:
            self._insert(first, last)

    def pauses(self) -> Iterator[Ends[T]]:
        """Yield the last of each run with the first of the next."""
        for (_, last), (first, _) in pairwise(self._runs):
            yield last, first

    def _insert(self, first: T, last: T) -> None:
        low = bisect_right(self._runs, first.at - self._gap, key=lambda run: run[1].at)
        high = bisect_left(self._runs, last.at + self._gap, key=lambda run: run[0].at)
        joined = [first, last, *(end for run in self._runs[low:high] for end in run)]
        self._runs[low:high] = [(min(joined, key=_when), max(joined, key=_when))]
        if len(self._runs) > self._most:
            self._runs[:2] = [(self._runs[0][0], self._runs[1][1])]


def _when(item: TimedEvent) -> tuple[datetime, str]:
    return item.at, item.event_id
