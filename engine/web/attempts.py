"""Failed attempts to sign in, so that passwords cannot be guessed: after a few of them a name has to wait. Pure but for its
memory."""

from __future__ import annotations

import threading
from collections import deque

WITHIN_S = 300.0
OF_NAME_AND_ADDRESS, OF_NAME, OF_ALL = 5, 25, 100  # failures within WITHIN_S, after which attempts are refused
_MOST_KEYS = 10_000

Key = tuple[str, ...]


class LoginAttempts:
    """Counts attempts that did not succeed: by name and address, by name, and in all. May be used by several threads.

    Times are those of one monotonic clock, in seconds.
    """

    def __init__(self) -> None:
        self._failures: dict[Key, deque[float]] = {}
        self._lock = threading.Lock()

    def wait_s(self, name: str, address: str, now_s: float) -> float:
        """Return the seconds until `name` may try again from `address`; 0 when it may now."""
        with self._lock:
            return max(self._wait_of(key, limit, now_s) for key, limit in _limits(name, address))

    def count(self, name: str, address: str, now_s: float) -> None:
        """Count an attempt as a failure, until it has succeeded."""
        with self._lock:
            if len(self._failures) > _MOST_KEYS:
                self._failures = {key: times for key, times in self._failures.items() if times and times[-1] > now_s - WITHIN_S}
            for key, limit in _limits(name, address):
                self._failures.setdefault(key, deque(maxlen=limit)).append(now_s)

    def succeeded(self, name: str, address: str) -> None:
        """Forget the failures of a name from an address, and that its last attempt was counted elsewhere."""
        with self._lock:
            self._failures.pop((name, address), None)
            for key, _ in _limits(name, address):
                if times := self._failures.get(key):
                    times.pop()

    def _wait_of(self, key: Key, limit: int, now_s: float) -> float:
        times = self._failures.get(key)
        return max(0.0, times[0] + WITHIN_S - now_s) if times and len(times) >= limit else 0.0


def _limits(name: str, address: str) -> tuple[tuple[Key, int], ...]:
    return ((name, address), OF_NAME_AND_ADDRESS), ((name,), OF_NAME), ((), OF_ALL)
