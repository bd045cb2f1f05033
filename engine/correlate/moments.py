"""Moments: the times of events, the earliest of each second, bounded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from engine.correlate.aggregate import EventTime

MAX_MOMENTS = 1000
_SLACK = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Moments:
    """A bounded set of times with their event ids: the earliest of each second, and of these the newest MAX_MOMENTS.

    The order of adding makes no difference.
    """

    __slots__ = ("_by_second",)

    def __init__(self, stamps: Iterable[EventTime] = ()) -> None:
        self._by_second: dict[int, EventTime] = {}
        for at, event_id in stamps:
            self.add(at, event_id)

    def add(self, at: datetime, event_id: str) -> None:
        """Add the time of an event."""
        second = (at - _EPOCH).days * 86400 + (at - _EPOCH).seconds
        stamp = (at, event_id)
        self._by_second[second] = min(stamp, self._by_second.get(second, stamp))
        if len(self._by_second) > MAX_MOMENTS + _SLACK:
            self._by_second = {second: self._by_second[second] for second in self._newest()}

    def stamps(self) -> list[EventTime]:
        """Return the moments in order of time."""
        return [self._by_second[second] for second in self._newest()]

    def _newest(self) -> list[int]:
        return sorted(self._by_second)[-MAX_MOMENTS:]
