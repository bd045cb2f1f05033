"""Wait for a store that is locked or away: repeat the work until it succeeds, and tell the operator."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import StoreAway
from engine.ports import Say

T = TypeVar("T")
ANNOUNCE_AFTER_S = 10.0
ANNOUNCE_EVERY_S = 600.0
PAUSE_S = 1.0


class StoreOutage:
    """An outage of the store, and its announcements: after ANNOUNCE_AFTER_S, then every ANNOUNCE_EVERY_S, and at the end.

    Args:
        elapsed_s: a monotonic clock.
    """

    def __init__(self, elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_s = elapsed_s
        self._since_s: float | None = None
        self._due_s = 0.0
        self._announced = False

    def goes_on(self, error: StoreAway) -> str | None:
        """Note that the store is away; return an announcement when one is due, else None."""
        now_s = self._elapsed_s()
        if self._since_s is None:
            self._since_s, self._due_s = now_s, now_s + ANNOUNCE_AFTER_S
        if now_s < self._due_s:
            return None
        self._due_s, self._announced = now_s + ANNOUNCE_EVERY_S, True
        return f"waiting for the incident store for {now_s - self._since_s:.0f} s now, nothing is lost: {error}"

    def ends(self) -> str | None:
        """Note that the store is back; return an announcement if the outage was announced, else None."""
        since_s, announced = self._since_s, self._announced
        self._since_s, self._announced = None, False
        if since_s is None or not announced:
            return None
        return f"the incident store is back after {self._elapsed_s() - since_s:.0f} s"


def until_back(
    work: Callable[[], T], pause: Callable[[float], object], say: Say, elapsed_s: Callable[[], float] = time.monotonic
) -> T:
    """Return the result of `work`; while it raises StoreAway, repeat it after a pause of PAUSE_S.

    Args:
        work: must have no effect when it raises.
        pause: waits for a number of seconds; a true result means that a stop was requested, and StoreAway is raised.
        say: takes the announcements of the outage (see StoreOutage).
    """
    outage = StoreOutage(elapsed_s)
    while True:
        try:
            result = work()
        except StoreAway as error:
            if sentence := outage.goes_on(error):
                say(sentence)
            if pause(PAUSE_S):
                raise
        else:
            if sentence := outage.ends():
                say(sentence)
            return result
