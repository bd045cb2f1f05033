"""A clock for waits: wall time that advances with a monotonic clock, so that setting the machine's clock changes no wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from engine.model.phrases import lasting

TOLERANCE = timedelta(seconds=2)  # smaller differences are adopted silently: the usual corrections of NTP
SETTLED_S = 600.0  # how long the wall clock must keep its new offset before it is adopted
_PREEMPTED_S = 0.5  # a comparison that took longer is ignored


class Jump(Struct, frozen=True):
    """The wall clock differs by `by` from the monotonic one. `adopted`: for SETTLED_S, and `now` includes it from here on."""

    by: timedelta
    adopted: bool = False

    def __str__(self) -> str:
        """Return a sentence for the operator."""
        direction = "forward" if self.by > timedelta(0) else "back"
        distance = lasting(abs(self.by))
        if self.adopted:
            return f"the clock of this machine has stayed {distance} {direction} of where it was and is believed now"
        return (
            f"the clock of this machine went {direction} by {distance}: waits go on as if it had not;"
            f" if it stays there for {lasting(timedelta(seconds=SETTLED_S))} it is believed"
        )


def wall() -> datetime:
    """Return the time of the machine's wall clock."""
    return datetime.now(UTC)


def uptime_s() -> float:
    """Return monotonic seconds; they include the time in which the machine slept, where the system provides that."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """The wall time of its creation plus the time that a monotonic clock has measured since. Used by one thread.

    `check` compares it with the wall clock: a small difference is adopted, a larger one is a Jump. A jump may break a correct
    clock or correct a wrong one; at that moment nobody can know which. So the new time is adopted once it has lasted for
    SETTLED_S.

    Args:
        wall_time: returns the wall clock's time, aware.
        elapsed_s: returns seconds of a clock that is never set.
    """

    def __init__(self, wall_time: Callable[[], datetime] = wall, elapsed_s: Callable[[], float] = uptime_s) -> None:
        self._wall_time, self._elapsed_s = wall_time, elapsed_s
        self._base, self._began_s = wall_time(), elapsed_s()
        self._pending: timedelta | None = None
        self._since_s = 0.0

    def now(self) -> datetime:
        """Return the time, aware, in UTC."""
        return self._base + timedelta(seconds=self._elapsed_s() - self._began_s)

    def check(self) -> Jump | None:
        """Return a jump that is new or has just been adopted; None otherwise."""
        before_s = self._elapsed_s()
        wall_time = self._wall_time()
        if (now_s := self._elapsed_s()) - before_s > _PREEMPTED_S:
            return None
        offset = wall_time - self.now()
        if abs(offset) <= TOLERANCE:
            self._base, self._pending = self._base + offset, None
            return None
        if self._pending is None or abs(offset - self._pending) > TOLERANCE:
            self._pending, self._since_s = offset, now_s
            return Jump(offset)
        if now_s - self._since_s < SETTLED_S:
            return None
        self._base, self._pending = self._base + offset, None
        return Jump(offset, adopted=True)
