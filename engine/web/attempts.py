"""Failed attempts to sign in, so that passwords cannot be guessed: after a few of them a name has to wait. Pure but for its
memory.

A browser in which a user has signed in before has a count of its own, so that nobody can keep that user out by wrong guesses
(OWASP, "Device cookies").
"""

from __future__ import annotations

import threading
from collections import deque

WITHIN_S = 300.0
OF_BROWSER = 5  # failures within WITHIN_S, after which attempts are refused
OF_NAME_AND_ADDRESS, OF_NAME, OF_ALL = 5, 25, 100  # the same of a browser that is not known
_MOST_KEYS = 10_000

Key = tuple[str, ...]


class LoginAttempts:
    """Counts attempts that did not succeed: by name and address, by name, and in all; those of a browser in which the user has
    signed in before by that browser only. May be used by several threads.

    Times are those of one monotonic clock, in seconds. `browser` is the id of such a browser, empty for any other.
    """

    def __init__(self) -> None:
        self._failures: dict[Key, deque[float]] = {}
        self._lock = threading.Lock()

    def wait_s(self, name: str, address: str, now_s: float, browser: str = "") -> float:
        """Return the seconds until `name` may try again from `address`; 0 when it may now."""
        with self._lock:
            return max(self._wait_of(key, limit, now_s) for key, limit in _limits(name, address, browser))

    def count(self, name: str, address: str, now_s: float, browser: str = "") -> None:
        """Count an attempt as a failure, until it has succeeded."""
        with self._lock:
            if len(self._failures) > _MOST_KEYS:
                self._failures = {key: times for key, times in self._failures.items() if times and times[-1] > now_s - WITHIN_S}
            for key, limit in _limits(name, address, browser):
                self._failures.setdefault(key, deque(maxlen=limit)).append(now_s)

    def succeeded(self, name: str, address: str, browser: str = "") -> None:
        """Forget the failures of a name from an address or a browser, and that its last attempt was counted elsewhere."""
        with self._lock:
            first, *others = _limits(name, address, browser)
            self._failures.pop(first[0], None)
            for key, _ in others:
                if times := self._failures.get(key):
                    times.pop()

    def _wait_of(self, key: Key, limit: int, now_s: float) -> float:
        times = self._failures.get(key)
        return max(0.0, times[0] + WITHIN_S - now_s) if times and len(times) >= limit else 0.0


def _limits(name: str, address: str, browser: str) -> tuple[tuple[Key, int], ...]:
    if browser:
        return ((("browser", name, browser), OF_BROWSER),)
    return ((name, address), OF_NAME_AND_ADDRESS), ((name,), OF_NAME), ((), OF_ALL)
