"""Unions of time spans: when something was heard from, pauses shorter than `gap` closed. Independent of the order of adding."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import zip_longest

from msgspec import Struct

LineRange = tuple[int, int]  # positions of the first and the last event known of a span

MAX_SPANS = 500  # a broker that prints nothing but its ten-minute heartbeat fills this in three and a half days


class Gap(Struct, frozen=True):
    """A pause: nothing in the open interval (`since`, `until`); `until` is None while it lasts."""

    since: datetime
    until: datetime | None


class Spans:
    """A sorted union of spans, any two of which lie at least `gap` apart.

    Of each it is known from where to where in their source its events stand, as far as that was told. Beyond MAX_SPANS the two
    oldest are joined: the oldest pause is forgotten, what was heard never is.
    """

    __slots__ = ("_firsts", "_gap", "_lasts", "_places")

    def __init__(
        self, gap: timedelta, spans: Iterable[Sequence[datetime]] = (), places: Iterable[LineRange | None] = ()
    ) -> None:
        self._gap = gap
        self._firsts: list[datetime] = []
        self._lasts: list[datetime] = []
        self._places: list[LineRange | None] = []
        for (first, last), where in zip_longest(spans, places):
            self.add(first, last, where)

    def __iter__(self) -> Iterator[tuple[datetime, datetime]]:
        return zip(self._firsts, self._lasts, strict=True)

    def __bool__(self) -> bool:
        return bool(self._lasts)

    @property
    def last(self) -> datetime:
        """Return the newest time. Raises IndexError when nothing was added."""
        return self._lasts[-1]

    def add(self, first: datetime, last: datetime, where: LineRange | None = None) -> bool:
        """Add [`first`, `last`]; return whether that changed anything.

        Args:
            where: between which places in their source its events stand; None where that is not known.
        """
        low = bisect_right(self._lasts, first - self._gap)
        high = bisect_left(self._firsts, last + self._gap)
        if low < high:
            joined = _joined((*self._places[low:high], where))
            inside = high == low + 1 and self._firsts[low] <= first and last <= self._lasts[low]
            if inside and joined == self._places[low]:
                return False
            first, last, where = min(first, self._firsts[low]), max(last, self._lasts[high - 1]), joined
        self._firsts[low:high] = [first]
        self._lasts[low:high] = [last]
        self._places[low:high] = [where]
        if len(self._firsts) > MAX_SPANS:
            self._places[:2] = [_joined(self._places[:2])]
            del self._firsts[1], self._lasts[0]
        return True

    @property
    def places(self) -> Sequence[LineRange | None]:
        """Return where in their source the events of each span stand."""
        return self._places

    def contradicted(self, ahead: timedelta) -> list[tuple[datetime, datetime]]:
        """Return the spans that the source itself denies: it printed events more than `ahead` earlier both before and after
        those. A clock that was put back denies what it showed before; one that was put forward, nothing."""
        denied: list[tuple[datetime, datetime]] = []
        behind: LineRange | None = None  # of what is believed and lies more than `ahead` before the span
        waiting = 0
        believed: list[tuple[datetime, LineRange | None]] = []
        for (first, last), where in zip(self, self._places, strict=True):
            while waiting < len(believed) and believed[waiting][0] < first - ahead:
                behind = _joined((behind, believed[waiting][1]))
                waiting += 1
            if behind is not None and where is not None and behind[0] < where[0] and where[1] < behind[1]:
                denied.append((first, last))
            else:
                believed.append((last, where))
        return denied

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


def _joined(places: Iterable[LineRange | None]) -> LineRange | None:
    """Return from where to where several stretches reach; None when none of them is known."""
    known = [where for where in places if where is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def union(all_spans: Iterable[Spans], gap: timedelta) -> Spans:
    """Return the union of several unions."""
    return Spans(gap, (span for spans in all_spans for span in spans))
