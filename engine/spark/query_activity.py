"""Follow a query by the events that Spark sends to listeners, without a look into its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery, StreamingQueryListener

_AT_WORK = ("Processing", "No new data")  # the status of a query whose batch is planned (MicroBatchExecution.runBatch)


class QueryActivity(StreamingQueryListener):  # type: ignore[misc]
    """The triggers of one query.

    Args:
        done: the last batch that is done when the query starts; -1 for none.
    """

    def __init__(self, spark: SparkSession, done: int) -> None:
        self._spark, self._done, self._reports = spark, done, 0
        self._events: SimpleQueue[tuple[str, int | None, float]] = SimpleQueue()  # run, batch, seconds of its trigger
        spark.streams.addListener(self)

    def close(self) -> None:
        """End listening. The JVM may have ended already, by a signal to the process group."""
        with suppress(Exception):  # py4j raises errors of any kind then
            self._spark.streams.removeListener(self)

    def triggers_s(self, query: StreamingQuery) -> Iterator[float]:
        """Yield the durations of the triggers with a batch that have ended since the last call, in seconds."""
        for run, batch, duration_s in self._received():
            if run == str(query.runId):
                self._reports += 1
                if batch is not None:
                    self._done = max(self._done, batch)
                    yield duration_s

    def unfinished_batch(self, query: StreamingQuery) -> tuple[int | None, str]:
        """Return the batch that is planned or being planned, None for no such batch, and, while it is being planned, the number
        of reports so far (else empty), as of the last call of `triggers_s`."""
        status = query.status
        if not status["isTriggerActive"]:
            return None, ""
        return self._done + 1, "" if status["message"].startswith(_AT_WORK) else str(self._reports)

    def _received(self) -> Iterator[tuple[str, int | None, float]]:
        while True:
            try:
                yield self._events.get_nowait()
            except Empty:
                return

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take the report of a trigger with a batch."""
        progress = event.progress
        duration_ms = dict(progress.durationMs).get("triggerExecution", 0)
        self._events.put((str(progress.runId), int(progress.batchId), duration_ms / 1000))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Take the report of triggers without a batch."""
        self._events.put((str(event.runId), None, 0.0))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing: who waits for the query notices."""
