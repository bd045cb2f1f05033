"""Pace messages to one per second for each rate limit key (a Slack channel): a token bucket of size one, which may be
overdrawn."""

from __future__ import annotations

from datetime import datetime, timedelta

INTERVAL_S = 1.0


class Pace:
    """The time at which each rate limit key is free again. The empty key is never paced."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._free_at: dict[str, datetime] = {}

    def wait_s(self, rate_limit_key: str, now: datetime) -> float:
        """Return the seconds from `now` until `rate_limit_key` is free; 0: it is free."""
        free_at = self._free_at.get(rate_limit_key)
        return 0.0 if free_at is None else max(0.0, (free_at - now).total_seconds())

    def spend(self, rate_limit_key: str, messages: int, now: datetime) -> None:
        """Count `messages` that were sent at `now`."""
        if rate_limit_key and messages:
            start = max(now, self._free_at.get(rate_limit_key, now))
            self._free_at[rate_limit_key] = start + timedelta(seconds=self._interval_s * messages)

    def forget(self) -> None:
        """Free every rate limit key, as the times came from a clock that was wrong."""
        self._free_at.clear()
