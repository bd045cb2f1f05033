"""The main job: sources, keyed by scope, through the same stages as `replay()`, into the incident store.

A batch is one transaction: its findings, the incidents decided from them, and its id. Spark may hand a batch over again after a
crash; one whose id is in is skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING

from engine.codec import dumps
from engine.errors import DataLoss, SourceError, TocsinError
from engine.incident import group
from engine.model.incidents import Blind, Evidence, Roster, Verdict
from engine.model.rules import Plan
from engine.spark.rows import SCHEMA, Item, Loss, Notice, item
from engine.spark.slices import Scanned
from engine.spark.sources import SourceSpec
from engine.store import Store
from engine.store.store import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_DISK = re.compile("No space left on device|Disk quota exceeded|Read-only file system|File too large")
POLL_S = 0.2
STALLED_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one batch read and decided, and what there is to say of its input. `repeated`: it was in the store already."""

    batch: int
    lines: int
    incidents: int
    said: Sequence[str] = ()
    repeated: bool = False


def _ignore(report: BatchReport) -> None:
    pass


@dataclass(frozen=True)
class Job:
    """Everything a run needs.

    `bounded`: read what is there, take open ends as final, and end. Otherwise run until `stop` is set, a batch every
    `trigger_s`; a source that cannot be read for `stalled_after_s` is an incident. `on_batch` is called after each batch is in
    the store. `checkpoint` belongs to this set of sources: what was read is not read again; changed rules go on where the old
    ones stood.
    """

    sources: Sequence[SourceSpec]
    plan: Plan
    store: Store
    checkpoint: Path
    bounded: bool
    trigger_s: float = 1.0
    max_lines: int | None = None
    parallelism: int = 1
    stalled_after_s: float = STALLED_AFTER_S
    on_batch: Callable[[BatchReport], None] = _ignore
    stop: threading.Event = field(default_factory=threading.Event)


def log_of(checkpoint: Path) -> Path:
    """Return where Spark's own messages go."""
    return checkpoint / "spark.log"


def run(job: Job, spark: SparkSession) -> None:
    """Run `job` to its end. Raises the TocsinError behind a failure.

    Whoever stops a job may have stopped Java and the workers with it (systemd tells the whole group), so what breaks from then
    on is no failure: the next run does the batch again.
    """
    if job.stop.is_set():  # told to stop while Spark started
        return
    batches = _Batches(job)
    query = _started(job, spark, batches)
    try:
        while not query.awaitTermination(POLL_S):
            if job.stop.is_set():
                query.stop()
                break
    except Exception as error:
        if job.stop.is_set() and batches.failure is None:
            return
        raise batches.failure or _explained(error, job.checkpoint) from error


def plan_file(plan: Plan, folder: Path) -> Path:
    """Write `plan` to `folder` for the workers, under a name that holds its hash, and return the path.

    Raises TocsinError when the folder cannot be written to.
    """
    text = dumps(plan)
    path = folder / f"plan-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)  # another process sees all of it or nothing
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise _unwritable(folder, error.strerror or str(error)) from None
    return path


def _started(job: Job, spark: SparkSession, batches: _Batches) -> StreamingQuery:
    plan = str(plan_file(job.plan, job.checkpoint))
    rows = _input(job, spark, plan)
    from engine.spark.processor import ScopeProcessor  # noqa: PLC0415  (needs pyspark, as everything from here on)

    findings = rows.groupBy("scope").transformWithState(ScopeProcessor(plan, job.bounded), SCHEMA, "Update", "None")
    writer = findings.writeStream.outputMode("update").option("checkpointLocation", str(_offsets(job)))
    trigger = {"availableNow": True} if job.bounded else {"processingTime": f"{round(job.trigger_s * 1000)} milliseconds"}
    return writer.trigger(**trigger).foreachBatch(batches.take).start()


def _input(job: Job, spark: SparkSession, plan: str) -> DataFrame:
    """Return the rows of all sources, and ticks when the input has no end."""
    from engine.spark import datasource  # noqa: PLC0415

    spark.dataSource.register(datasource.SourceStream)
    reading = datasource.Reading(plan, job.parallelism, job.max_lines, None if job.bounded else job.stalled_after_s)
    options = datasource.source_options(job.sources, reading)
    return spark.readStream.format(datasource.SOURCE_FORMAT).options(**options).load()


class _Batches:
    """Puts batches into the store; keeps the error of one that failed, which Spark would only quote."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.failure: TocsinError | None = None

    def take(self, frame: DataFrame, batch: int) -> None:
        items = [item(row.kind, row.body) for row in frame.collect()]
        try:
            self._job.on_batch(self._put(items, batch))
        except TocsinError as error:
            self.failure = error
            raise

    def _put(self, items: Sequence[Item], batch: int) -> BatchReport:
        lines = sum(each.lines for each in items if isinstance(each, Scanned))
        losses = [each for each in items if isinstance(each, Loss)]
        said = [each.sentence for each in losses] + [each.text for each in items if isinstance(each, Notice)]
        findings = [each for each in items if isinstance(each, Verdict | Evidence | Roster | Blind)]
        query = json.loads((_offsets(self._job) / "metadata").read_text(encoding="utf-8"))["id"]
        with self._job.store.batch(BatchId(query, batch), self._job.plan.hash) as ledger:
            if ledger is None:
                return BatchReport(batch, lines, 0, repeated=True)
            revisions = list(group(findings, self._job.plan, ledger))
            ledger.put_losses(DataLoss(each.source_id, each.lost_from, each.lost_to, each.why) for each in losses)
        return BatchReport(batch, lines, len({incident.id for incident in revisions}), said)


def _offsets(job: Job) -> Path:
    return job.checkpoint / "query"


def _explained(error: Exception, checkpoint: Path) -> TocsinError:
    """Return the sentence of an error of ours that was raised in a worker, else what Spark says and where the rest is."""
    text, log = str(error), log_of(checkpoint)
    ours = re.findall(r"^engine\.errors\.\w+: (.+)$", text, re.MULTILINE)
    if ours:
        return SourceError(ours[-1])
    if found := _DISK.search(text):
        # the state's working copy is in the temporary folder, and the message seldom says which of the two it was
        return _unwritable(min((checkpoint, Path(gettempdir())), key=lambda folder: disk_usage(folder).free), found[0])
    return TocsinError(f"the Spark job failed: {text.strip().partition(chr(10))[0]} (see {log})")


def _unwritable(folder: Path, why: str) -> TocsinError:
    return TocsinError(f"the job cannot write to {folder}: {why}; mend that and start again: it goes on where it ended")
