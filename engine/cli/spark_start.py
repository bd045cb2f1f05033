"""Start Spark for a run, when it is first needed, and stop it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from engine.config import Settings
from engine.errors import StoreAway
from engine.ports import Say
from engine.spark.checkpoints import CheckpointFiles, HadoopCheckpoint
from engine.spark.job import log_of
from engine.spark.session import is_submitted, start, stop
from engine.spark.spark_settings import Resources, is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def resources_of(settings: Settings) -> Resources:
    """Return what Spark may use by the configuration."""
    return Resources(
        settings.cores,
        settings.partitions,
        settings.heap,
        log_of(settings.checkpoint),
        settings.master,
        settings.conf,
        settings.checkpoint_url,
    )


class SparkStart:
    """Spark of one run. It is started with the job, or before when its JVM has to reach the checkpoint.

    Args:
        stop: set when the run is to end.
        started_at_s: when the run began, on the clock of `time.perf_counter`.
        say: takes a sentence about the start.
    """

    def __init__(self, settings: Settings, stop: threading.Event, started_at_s: float, say: Say) -> None:
        self._settings, self._stop, self._started_at_s, self._say = settings, stop, started_at_s, say
        self._session: SparkSession | None = None

    def session(self) -> SparkSession | None:
        """Return the session, which the first call starts; None when the start failed after a stop, which may have ended Java
        too."""
        if self._session is None:
            self._session = self._start()
            if self._session is not None:
                log = "the terminal" if is_submitted() else log_of(self._settings.checkpoint)
                self._say(f"Spark is up after {time.perf_counter() - self._started_at_s:.1f} s; its messages go to {log}")
        return self._session

    def checkpoint(self) -> CheckpointFiles | None:
        """Return the files of a checkpoint that is in no folder of this machine; None when it is in one.

        Starts Spark for it. Raises StoreAway when a stop ended that.
        """
        url = self._settings.checkpoint_url
        if not url:
            return None
        session = self.session()
        if session is None:
            raise StoreAway(f"the run was ended before the checkpoint {url} could be reached")
        return HadoopCheckpoint(session, url)

    def parallelism(self) -> int:
        """Return the number of tasks that read."""
        settings = self._settings
        if settings.parallelism is not None:
            return settings.parallelism
        return 1 if self._session is None or is_local(str(self._session.sparkContext.master)) else settings.cores

    def close(self) -> None:
        """Stop Spark if it was started."""
        session, self._session = self._session, None
        if session is not None:
            stop(session)

    def _start(self) -> SparkSession | None:
        """Start Spark on a thread of its own, since on the main thread PySpark would handle Ctrl-C and a signal would interrupt
        the start."""
        resources = resources_of(self._settings)
        with ThreadPoolExecutor(1, "spark-start") as starter:
            try:
                return starter.submit(partial(start, resources, self._say)).result()
            except Exception:
                if self._stop.is_set():
                    return None
                raise
