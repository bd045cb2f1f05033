"""Unions of time spans, with pauses shorter than `gap` closed. They do not depend on the order of adding."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest

from msgspec import Struct

LineRange = tuple[int, int]  # positions in the source of the first and the last known event of a span

MAX_SPANS = 500  # a broker that prints nothing but its ten-minute heartbeat fills this in three and a half days


class Gap(Struct, frozen=True):
    """A pause: no event in the open interval (`since`, `until`); `until` is None while it lasts."""

    since: datetime
    until: datetime | None


class Spans:
    """A sorted union of spans, any two of which lie at least `gap` apart.

    Each has the range of positions of its events in their source, or None. Beyond MAX_SPANS the two oldest are
    joined: the oldest pause is lost, never an event.
    """

    __slots__ = ("_firsts", "_gap", "_lasts", "_places")

    def __init__(
        self, gap: timedelta, spans: Iterable[Sequence[datetime]] = (), places: Iterable[LineRange | None] = ()
    ) -> None:
        self._gap = gap
        self._firsts: list[datetime] = []
        self._lasts: list[datetime] = []
        self._places: list[LineRange | None] = []
        for (first, last), lines in zip_longest(spans, places):
            self.add(first, last, lines)

    def __iter__(self) -> Iterator[tuple[datetime, datetime]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __bool__(self) -> bool:
        return bool(self._lasts)

    @property
    def last(self) -> datetime:
        """Return the newest time. Raises IndexError when nothing was added."""
        return self._lasts[-1]

    def add(self, first: datetime, last: datetime, lines: LineRange | None = None) -> bool:
        """Add [`first`, `last`]; return whether that changed anything.

        Args:
            lines: the range of positions of its events in their source; None when they have no order.
        """
        low = bisect_right(self._lasts, first - self._gap)
        high = bisect_left(self._firsts, last + self._gap)
        if low < high:
            joined = _joined((*self._places[low:high], lines))
            inside = high == low + 1 and self._firsts[low] <= first and last <= self._lasts[low]
            if inside and joined == self._places[low]:
                return False
            first, last, lines = min(first, self._firsts[low]), max(last, self._lasts[high - 1]), joined
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]
        self._places[low:high] = [lines]
        if len(self._firsts) > MAX_SPANS:
            self._places[:2] = [_joined(self._places[:2])]
            del self._firsts[1], self._lasts[0]
        return True

    @property
    def places(self) -> Sequence[LineRange | None]:
        """The range of positions of each span, in order of time."""
        return self._places

    def contradicted(self, ahead: timedelta) -> list[tuple[datetime, datetime]]:
        """Return the spans that the source itself contradicts, in order of time.

        It printed events that are more than `ahead` earlier both before and after these. A clock that was put back contradicts
        its earlier times; one that was put forward contradicts none.
        """
        contradicted: list[tuple[datetime, datetime]] = []
        behind: LineRange | None = None  # positions of credible events that are more than `ahead` before the span
        waiting = 0
        credible: list[tuple[datetime, LineRange | None]] = []
        for (first, last), lines in zip(self, self._places, strict=True):
            while waiting < len(credible) and credible[waiting][0] < first - ahead:
                behind = _joined((behind, credible[waiting][1]))
                waiting += 1
            if behind is not None and lines is not None and behind[0] < lines[0] and lines[1] < behind[1]:
                contradicted.append((first, last))
            else:
                credible.append((last, lines))
        return contradicted

    def gaps(self) -> Iterator[Gap]:
        """Yield the pauses between spans in order, then the one since the last, which is still open."""
        for last, following in zip(self._lasts, self._firsts[1:], strict=False):
            yield Gap(last, following)
        if self._lasts:
            yield Gap(self._lasts[-1], None)

    def active_between(self, after: datetime, before: datetime | None) -> bool:
        """Return whether a span reaches past `after` and begins before `before` (None: whenever)."""
        index = bisect_right(self._lasts, after)
        return index < len(self._lasts) and (before is None or self._firsts[index] < before)


def _joined(places: Iterable[LineRange | None]) -> LineRange | None:
    """Return the range that covers all ranges; None when all are None."""
    ranges = [lines for lines in places if lines is not None]
    return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None


def union(all_spans: Iterable[Spans], gap: timedelta) -> Spans:
    """Return the union of several unions of spans."""
    return Spans(gap, (span for spans in all_spans for span in spans))
