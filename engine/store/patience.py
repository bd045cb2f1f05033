"""Waiting for a store that is locked or away: what must not be lost is done again until it is done; the operator is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import StoreAway
from engine.ports import Say

T = TypeVar("T")
SAID_AFTER_S = 10.0
SAID_AGAIN_S = 600.0
PAUSE_S = 1.0


class StoreOutage:
    """How long a store has been away, and what there is to say of it: after SAID_AFTER_S, each SAID_AGAIN_S, and at its end.

    Args:
        elapsed_s: a clock that is never set.
    """

    def __init__(self, elapsed_s: Callable[[], float] = time.monotonic) -> None:
        self._elapsed_s = elapsed_s
        self._since_s: float | None = None
        self._due_s = 0.0
        self._announced = False

    def goes_on(self, error: StoreAway) -> str | None:
        """Note that the store is away, and return a sentence when it is time for one."""
        now_s = self._elapsed_s()
        if self._since_s is None:
            self._since_s, self._due_s = now_s, now_s + SAID_AFTER_S
        if now_s < self._due_s:
            return None
        self._due_s, self._announced = now_s + SAID_AGAIN_S, True
        return f"waiting for the incident store for {now_s - self._since_s:.0f} s now, nothing is lost: {error}"

    def ends(self) -> str | None:
        """Note that the store is there, and return a sentence when its absence was announced."""
        since_s, announced = self._since_s, self._announced
        self._since_s, self._announced = None, False
        if since_s is None or not announced:
            return None
        return f"the incident store is back after {self._elapsed_s() - since_s:.0f} s"


def until_back(
    work: Callable[[], T], pause: Callable[[float], object], say: Say, elapsed_s: Callable[[], float] = time.monotonic
) -> T:
    """Return what `work` returns; while it raises StoreAway, do it again after a pause.

    Args:
        work: leaves nothing behind when it raises.
        pause: waits that many seconds; when it returns something true (a stop was asked for) the error is raised.
        say: takes what there is to say of the wait (see Absence).
    """
    absence = StoreOutage(elapsed_s)
    while True:
        try:
            result = work()
        except StoreAway as error:
            if sentence := absence.goes_on(error):
                say(sentence)
            if pause(PAUSE_S):
                raise
        else:
            if sentence := absence.ends():
                say(sentence)
            return result
