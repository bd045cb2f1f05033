"""A clock for waits: wall time that a monotonic clock moves on. Setting the machine's clock neither ends nor prolongs them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from engine.model.phrases import lasting

TOLERANCE = timedelta(seconds=2)  # what is followed without a word: the usual corrections of NTP
SETTLED_S = 600.0  # how long a clock must stay where it jumped to before it is believed
_PREEMPTED_S = 0.5  # a comparison that took longer says nothing


class Jump(Struct, frozen=True):
    """The wall clock is off by `by` against the monotonic one. `adopted`: it stayed so for SETTLED_S; `now` has moved by it."""

    by: timedelta
    adopted: bool = False

    def __str__(self) -> str:
        """Return a sentence for the operator."""
        way = "forward" if self.by > timedelta(0) else "back"
        distance = lasting(abs(self.by))
        if self.adopted:
            return f"the clock of this machine has stayed {distance} {way} of where it was and is believed now"
        return (
            f"the clock of this machine went {way} by {distance}: waits go on as if it had not;"
            f" if it stays there for {lasting(timedelta(seconds=SETTLED_S))} it is believed"
        )


def wall() -> datetime:
    """Return the time of the machine's wall clock."""
    return datetime.now(UTC)


def uptime_s() -> float:
    """Return seconds that only grow; where the system can tell, the time in which the machine slept counts."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class SteadyClock:
    """Wall time of the moment it was made, moved on by a monotonic clock. Used by one thread.

    `check` compares it with the wall clock: small differences are followed, a larger one is a Jump. Which of the two clocks is
    right cannot be known then: one that was wrong before is put right by a jump as well. So the new time is adopted once it
    has lasted for SETTLED_S.

    Args:
        wall_time: the wall clock, aware.
        elapsed_s: a clock that is never set.
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
        """Return the jump that has just been noticed or adopted; None when there is nothing new."""
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
