"""A schedule: one time for each key, and the keys that are due."""

from __future__ import annotations

from datetime import datetime
from heapq import heapify, heappop, heappush

_SPARE = 64  # replaced times that may stay in the heap in any case


class Agenda:
    """One time for each key. The cost of `due` grows with the number of due keys, not of all keys."""

    def __init__(self) -> None:
        self._times: dict[str, datetime] = {}
        self._heap: list[tuple[datetime, str]] = []

    def put(self, key: str, at: datetime | None) -> None:
        """Schedule `key` for `at` instead of any earlier time; None: never."""
        if at is None:
            self._times.pop(key, None)
        elif self._times.get(key) != at:
            self._times[key] = at
            heappush(self._heap, (at, key))
            self._shrink()

    def due(self, now: datetime) -> list[str]:
        """Remove and return the keys that are due, the earliest first."""
        keys = []
        while self._heap and self._heap[0][0] <= now:
            at, key = heappop(self._heap)
            if self._times.get(key) == at:
                del self._times[key]
                keys.append(key)
        return keys

    def _shrink(self) -> None:
        if len(self._heap) > 2 * len(self._times) + _SPARE:
            self._heap = [(at, key) for key, at in self._times.items()]
            heapify(self._heap)
