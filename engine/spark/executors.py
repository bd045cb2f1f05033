"""Notice that a cluster gives the run no executors, or that its master has gone. Spark itself would wait for ever, as silent as
a run without input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.errors import TocsinError
from engine.ports import Say
from engine.spark.masters import answers
from engine.spark.spark_settings import is_local, without_user

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_EVERY_S = 5.0
REPORTED_AFTER_S = 30.0
ENDS_AFTER_S = 300.0


class ClusterAbsence(Struct, frozen=True):
    """A run without executors, or without its master.

    Attributes:
        since_s: since when, on a monotonic clock.
        reported: whether it has lasted for REPORTED_AFTER_S.
        ended: whether it has lasted for as long as that of executors may.
    """

    since_s: float
    reported: bool = False
    ended: bool = False


def check_absence(before: ClusterAbsence | None, present: int, now_s: float) -> ClusterAbsence | None:
    """Return the absence as of `now_s`, given the last result and how many are `present`; None while there are any. Pure."""
    if present:
        return None
    since_s = before.since_s if before is not None else now_s
    lasted_s = now_s - since_s
    return ClusterAbsence(since_s, reported=lasted_s >= REPORTED_AFTER_S, ended=lasted_s >= ENDS_AFTER_S)


class ExecutorWatch:
    """Looks for the executors of a run and for its master every LOOK_EVERY_S; `say` takes one sentence about an absence that
    lasts, and one about a master that is back. A local run has none to look for.

    Args:
        master: the address of the master.
        executors: returns how many executors the run has.
        has_master: returns whether the master at an address answers.
    """

    def __init__(
        self, master: str, executors: Callable[[], int], say: Say, has_master: Callable[[str], bool] = answers
    ) -> None:
        self._master, self._executors, self._say, self._has_master = master, executors, say, has_master
        self._absence: ClusterAbsence | None = None
        self._masters_absence: ClusterAbsence | None = None
        self._looked_at_s = float("-inf")

    def look(self, now_s: float) -> TocsinError | None:
        """Return the error that the run has to end with, None while it goes on; `now_s` is the time on a monotonic clock."""
        if is_local(self._master) or now_s - self._looked_at_s < LOOK_EVERY_S:
            return None
        self._looked_at_s = now_s
        executors, master = self._executors(), without_user(self._master)
        self._look_at_master(executors, master, now_s)
        before, now = self._absence, check_absence(self._absence, executors, now_s)
        self._absence = now
        remedy = (
            "are there workers with a free core and enough memory?"
            if self._masters_absence is None
            else "it does not answer; start it again."
        )
        if now is not None and now.reported and not (before and before.reported):
            self._say(
                f"{master} has given this run no executor for {REPORTED_AFTER_S:.0f} s: {remedy}"
                f" The run ends after {ENDS_AFTER_S:.0f} s without one"
            )
        if now is None or not now.ended:
            return None
        why = "" if self._masters_absence is None else " and does not answer"
        return TocsinError(
            f"{master} gives this run no executor{why}; start again when it has workers: it goes on where it ended"
        )

    def _look_at_master(self, executors: int, master: str, now_s: float) -> None:
        """Report a master that has gone while there are executors, and one that is back."""
        before, now = self._masters_absence, check_absence(self._masters_absence, int(self._has_master(self._master)), now_s)
        self._masters_absence = now
        if now is None and before is not None and before.reported:
            self._say(f"{master} answers again")
        elif executors and now is not None and now.reported and not (before and before.reported):
            self._say(
                f"{master} has not answered for {REPORTED_AFTER_S:.0f} s: the run goes on with the executors that it has"
                f" ({executors}), and gets no others until the master is back"
            )


def watch_of(spark: SparkSession, say: Say) -> ExecutorWatch:
    """Return the watch of the run of `spark`."""

    def executors() -> int:  # without the driver
        return max(0, int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1)

    return ExecutorWatch(str(spark.sparkContext.master), executors, say)
