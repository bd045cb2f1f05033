"""The axis of time of a picture: it is stretched where more happens, so that a burst of seconds and a silence of hours are both
legible. Equal pauses have equal lengths."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

_POWER = 0.45  # lengths grow with this power of the pause
_MOST = 0.3  # of the width, for one pause
_INSTANT = timedelta(milliseconds=500)  # closer times share a place


class Scale:
    """Positions of times between `left` and `right`, in pixels."""

    def __init__(self, times: Iterable[datetime], left: float, right: float) -> None:
        self._times = _apart(sorted(set(times)))
        pauses = [(later - earlier).total_seconds() ** _POWER for earlier, later in pairwise(self._times)]
        limit = _MOST * sum(pauses) if len(pauses) > 3 else sum(pauses)
        lengths = [min(pause, limit) for pause in pauses]
        total = sum(lengths) or 1.0
        self._places = [left] if lengths else [(left + right) / 2]
        for length in lengths:
            self._places.append(self._places[-1] + length / total * (right - left))

    def x(self, at: datetime) -> float:
        """Return the place of a time; the nearest end for one beyond the axis."""
        position = bisect_right(self._times, at)
        if position == 0:
            return round(self._places[0], 1)
        if position == len(self._times):
            return round(self._places[-1], 1)
        before, after = self._times[position - 1], self._times[position]
        part = (at - before) / (after - before)
        return round(self._places[position - 1] + part * (self._places[position] - self._places[position - 1]), 1)

    def ticks(self, wanted: Sequence[datetime], apart: float) -> list[datetime]:
        """Return the times to be labelled, in order: `wanted` first, then others, none closer to another than `apart`."""
        chosen: list[datetime] = []
        for at in (*wanted, *self._times):
            if all(abs(self.x(at) - self.x(other)) >= apart for other in chosen):
                chosen.append(at)
        return sorted(chosen)


def _apart(times: Sequence[datetime]) -> list[datetime]:
    kept: list[datetime] = []
    for at in times:
        if not kept or at - kept[-1] >= _INSTANT:
            kept.append(at)
    return kept
