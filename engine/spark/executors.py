"""Notice that a cluster gives the run no executors. Spark itself would wait for ever, as silent as a run without input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from engine.errors import TocsinError
from engine.ports import Say
from engine.spark.spark_settings import is_local, without_user

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_EVERY_S = 5.0
REPORTED_AFTER_S = 30.0
ENDS_AFTER_S = 300.0


class ExecutorAbsence(Struct, frozen=True):
    """A run without executors.

    Attributes:
        since_s: since when, on a monotonic clock.
        reported: whether it has lasted for REPORTED_AFTER_S.
        ended: whether it has lasted for as long as it may.
    """

    since_s: float
    reported: bool = False
    ended: bool = False


def check_absence(before: ExecutorAbsence | None, executors: int, now_s: float) -> ExecutorAbsence | None:
    """Return the absence of executors as of `now_s`, given the last result and their number; None while there are any. Pure."""
    if executors:
        return None
    since_s = before.since_s if before is not None else now_s
    lasted_s = now_s - since_s
    return ExecutorAbsence(since_s, reported=lasted_s >= REPORTED_AFTER_S, ended=lasted_s >= ENDS_AFTER_S)


class ExecutorWatch:
    """Looks for the executors of a run every LOOK_EVERY_S; `say` takes one sentence about an absence that lasts. A local run
    has none to look for."""

    def __init__(self, spark: SparkSession, say: Say) -> None:
        self._spark, self._say, self._master = spark, say, str(spark.sparkContext.master)
        self._absence: ExecutorAbsence | None = None
        self._looked_at_s = float("-inf")

    def look(self, now_s: float) -> TocsinError | None:
        """Return the error that the run has to end with, None while it goes on; `now_s` is the time on a monotonic clock."""
        if is_local(self._master) or now_s - self._looked_at_s < LOOK_EVERY_S:
            return None
        self._looked_at_s = now_s
        before, now = self._absence, check_absence(self._absence, _executors_of(self._spark), now_s)
        self._absence, master = now, without_user(self._master)
        if now is not None and now.reported and not (before and before.reported):
            self._say(
                f"{master} has given this run no executor for {REPORTED_AFTER_S:.0f} s: are there workers with a free core and"
                f" enough memory? The run ends after {ENDS_AFTER_S:.0f} s without one"
            )
        if now is None or not now.ended:
            return None
        return TocsinError(f"{master} gives this run no executor; start again when it has workers: it goes on where it ended")


def _executors_of(spark: SparkSession) -> int:
    """Return how many executors the run has, without the driver."""
    return max(0, int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1)
