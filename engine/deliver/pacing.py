"""One message a second for each rate limit key (a Slack channel): a bucket with room for one, which may be overdrawn."""

from __future__ import annotations

from datetime import datetime, timedelta

INTERVAL_S = 1.0


class Pace:
    """When a rate limit key may be used again. The empty rate limit key is never paced."""

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._free_at: dict[str, datetime] = {}

    def wait_s(self, rate_limit_key: str, now: datetime) -> float:
        """Return how long `rate_limit_key` must rest from `now` on; 0: it is free."""
        free_at = self._free_at.get(rate_limit_key)
        return 0.0 if free_at is None else max(0.0, (free_at - now).total_seconds())

    def spend(self, rate_limit_key: str, messages: int, now: datetime) -> None:
        """Count `messages` that were sent at `now`."""
        if rate_limit_key and messages:
            start = max(now, self._free_at.get(rate_limit_key, now))
            self._free_at[rate_limit_key] = start + timedelta(seconds=self._interval_s * messages)

    def forget(self) -> None:
        """Let every rate limit key be free: the times were those of a clock that was wrong."""
        self._free_at.clear()
