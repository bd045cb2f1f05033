"""Unions of time spans: when something was heard from, pauses shorter than `gap` closed. Independent of the order of adding."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

MAX_SPANS = 500  # a broker that prints nothing but its ten-minute heartbeat fills this in three and a half days


class Gap(Struct, frozen=True):
    """A pause: nothing in the open interval (`since`, `until`); `until` is None while it lasts."""

    since: datetime
    until: datetime | None


class Spans:
    """A sorted union of spans, any two of which lie at least `gap` apart.

    Beyond MAX_SPANS the two oldest are joined: the oldest pause is forgotten, what was heard never is.
    """

    __slots__ = ("_firsts", "_gap", "_lasts")

    def __init__(self, gap: timedelta, spans: Iterable[Sequence[datetime]] = ()) -> None:
        self._gap = gap
        self._firsts: list[datetime] = []
        self._lasts: list[datetime] = []
        for first, last in spans:
            self.add(first, last)

    def __iter__(self) -> Iterator[tuple[datetime, datetime]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __bool__(self) -> bool:
        return bool(self._lasts)

    @property
    def last(self) -> datetime:
        """Return the newest time. Raises IndexError when nothing was added."""
        return self._lasts[-1]

    def add(self, first: datetime, last: datetime) -> bool:
        """Add [`first`, `last`]; return whether that changed anything."""
        low = bisect_right(self._lasts, first - self._gap)
        high = bisect_left(self._firsts, last + self._gap)
        if low < high:
            if high == low + 1 and self._firsts[low] <= first and last <= self._lasts[low]:
                return False
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]
        if len(self._firsts) > MAX_SPANS:
            del self._firsts[1], self._lasts[0]
        return True

    def gaps(self) -> Iterator[Gap]:
        """Yield the pauses between spans in order, then the one since the last, which is still open."""
        for last, following in zip(self._lasts, self._firsts[1:], strict=False):
            yield Gap(last, following)
        if self._lasts:
            yield Gap(self._lasts[-1], None)

    def heard_between(self, after: datetime, before: datetime | None) -> bool:
        """Return whether a span reaches past `after` and begins before `before` (None: whenever)."""
        index = bisect_right(self._lasts, after)
        return index < len(self._lasts) and (before is None or self._firsts[index] < before)


def union(all_spans: Iterable[Spans], gap: timedelta) -> Spans:
    """Return the union of several unions."""
    return Spans(gap, (span for spans in all_spans for span in spans))
