"""When to look at something again: times by key, and which keys are due."""

from __future__ import annotations

from datetime import datetime
from heapq import heapify, heappop, heappush

_SPARE = 64  # replaced times that are kept whatever there is


class Agenda:
    """One time for each key. What is asked for costs no more than what is due."""

    def __init__(self) -> None:
        self._times: dict[str, datetime] = {}
        self._heap: list[tuple[datetime, str]] = []

    def put(self, key: str, at: datetime | None) -> None:
        """Let `key` be due at `at`, whatever it was before; None: never."""
        if at is None:
            self._times.pop(key, None)
        elif self._times.get(key) != at:
            self._times[key] = at
            heappush(self._heap, (at, key))
            self._shrink()

    def due(self, now: datetime) -> list[str]:
        """Return the keys that are due, the earliest first, and forget them."""
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
