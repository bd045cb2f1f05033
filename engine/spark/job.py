"""The main job: sources, keyed by scope, through the same stages as `replay()`, into the incident store.

A batch is one transaction: its findings, the incidents decided from them, and its id. Spark may hand the last batch over again
after a crash: it is put in again, for its state is what the next one goes on with.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine.clock import SteadyClock
from engine.codec import dumps
from engine.errors import DataLoss, SourceError, StoreAway, TocsinError
from engine.incident import NOT_JUDGED, group, regroup
from engine.match import redactor_of
from engine.model.incidents import Evidence, Incident, NotEvaluated, Roster, Verdict
from engine.model.quarantine import DeadLetter
from engine.model.rules import Plan
from engine.quarantine import Quarantine, summed
from engine.spark.dead_letters import DeadLetterFile
from engine.spark.fence import QUERY, Fence, fenced
from engine.spark.overdue import AtWork, watched
from engine.spark.plans import at_work, done, forget_plan, query_id
from engine.spark.rows import SCHEMA, BatchRow, InputLoss, InputNotice, received
from engine.spark.slices import Scanned
from engine.spark.sources import SourceSpec
from engine.store import Store
from engine.store.patience import until_back
from engine.store.store import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

T = TypeVar("T")

_DISK = re.compile("No space left on device|Disk quota exceeded|Read-only file system|File too large")
_AWAY = re.compile(r"^engine\.errors\.SourceAway: (.+)$", re.MULTILINE)
_BUSY = re.compile("Python worker failed to connect back")  # Spark gives it ten seconds
POLL_S = 0.2
TRIES = 5
PRUNE_EVERY_S = 60.0
STALLED_AFTER_S = 60.0
OVERDUE_AFTER_S = 300.0


NO_BATCH = -1


class BatchReport(Struct, frozen=True):
    """What one batch read and decided, and what there is to say of its input.

    One that could not be read, and is planned anew, has something to say only; so has one that does not end. `batch` NO_BATCH:
    what was done besides.
    """

    batch: int
    lines: int
    incidents: int
    said: Sequence[str] = ()


def _ignore(report: BatchReport) -> None:
    pass


def _unchanged() -> Plan | None:
    return None


class Job(Struct, frozen=True):
    """Everything a run needs.

    `bounded`: read what is there, take open ends as final, and end. Otherwise run until `stop` is set, a batch every
    `trigger_s`; a source that cannot be read for `stalled_after_s` is an incident. Incidents that have been over for
    `retention_s` are removed from the store, some at a time; 0: never. `on_batch` is called after each batch is in the store,
    and from another thread once for a batch that has been at work for `overdue_after_s`.
    `renewed` is asked several times a second: a plan that it returns takes the place of `plan` for what comes next.
    `checkpoint` belongs to this set of sources: what was read is not read again; changed rules go on where the old ones stood.
    `fence` is what holds it and the store for this process; None: the run takes hold of them by itself.
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
    overdue_after_s: float = OVERDUE_AFTER_S
    retention_s: float = 0.0
    on_batch: Callable[[BatchReport], None] = _ignore
    renewed: Callable[[], Plan | None] = _unchanged
    stop: threading.Event = field(default_factory=threading.Event)
    fence: Fence | None = None

    def say(self, sentence: str) -> None:
        """Let it be said; `on_batch` is told."""
        self.on_batch(BatchReport(NO_BATCH, 0, 0, (sentence,)))


def log_of(checkpoint: Path) -> Path:
    """Return where Spark's own messages go."""
    return checkpoint / "spark.log"


def run(job: Job, spark: SparkSession) -> None:
    """Run `job` to its end, with a new query on the same checkpoint whenever its plan is renewed. Raises the TocsinError behind
    a failure, FenceError and StoreLost when checkpoint and store do not belong together, or are not there any more.

    What a source promised when a batch was planned may be away when it is read: a run without end then plans the batch anew,
    and so waits as for any source that is away. So does any run on a machine that is too busy. It gives up when TRIES in a row
    were planned and could not be read.

    Whoever stops a job may have stopped Java and the workers with it (systemd tells the whole group), so what breaks from then
    on is no failure: the next run does the batch again.
    """
    if job.stop.is_set():  # told to stop while Spark started
        return None
    if job.fence is None:
        with fence_of(job.store, job.checkpoint, job.say) as fence:
            return _run_fenced(replace(job, fence=fence), spark, fence)
    return _run_fenced(job, spark, job.fence)


@contextmanager
def fence_of(store: Store, checkpoint: Path, say: Callable[[str], None]) -> Iterator[Fence]:
    """Have store and checkpoint for oneself (see fence.fenced). Raises TocsinError when that cannot be."""
    with ExitStack() as held:
        try:
            fence = held.enter_context(fenced(store, checkpoint, say))
        except OSError as error:
            raise _unwritable(Path(error.filename or checkpoint).parent, error.strerror or str(error)) from None
        yield fence


def _run_fenced(job: Job, spark: SparkSession, fence: Fence) -> None:
    plan: Plan | None = job.plan
    while plan is not None and not job.stop.is_set():  # told to stop while other rules were taken up
        job = replace(job, plan=plan)
        plan = _run_until_renewed(job, spark, fence)


def _run_until_renewed(job: Job, spark: SparkSession, fence: Fence) -> Plan | None:
    """Run `job` with its plan; return the plan to go on with, None at its end."""
    fence.check()
    batches = _Batches(job, fence)
    batches.judge_anew()
    tries, done = 0, -1
    while not job.stop.is_set():
        try:
            return _run_query(job, spark, batches, fence)
        except _PassingError as passing:
            tries, done = (tries + 1 if batches.done == done else 1), batches.done
            if tries == TRIES:
                raise SourceError(f"{passing} (tried {tries} times)") from None
            batches.give_back(str(passing))
    return None


class _PassingError(Exception):
    """A query failed for what passes by itself; says what."""


def _run_query(job: Job, spark: SparkSession, batches: _Batches, fence: Fence) -> Plan | None:
    """Run one query of `job`; return the plan to go on with, None at its end. Raises _PassingError."""
    query = _started(job, spark, batches)
    try:
        while not query.awaitTermination(POLL_S):
            if (lost := _lost(fence)) is not None:
                job.stop.set()  # for whatever waits in a batch
                query.stop()
                raise lost
            batches.watch(query)
            plan = None if job.stop.is_set() else job.renewed()
            if plan is not None or job.stop.is_set():
                query.stop()
                return plan
    except Exception as error:
        if (lost := _lost(fence)) is not None:
            raise lost from None
        if batches.failure is not None:
            raise batches.failure from error
        if job.stop.is_set():
            return None
        if (why := _passing(str(error), job.bounded)) is not None:
            raise _PassingError(why) from error
        raise _explained(error, job.checkpoint) from error
    return None


def _lost(fence: Fence) -> TocsinError | None:
    """Return what became of store or checkpoint when they are not the ones any more that the job began with."""
    try:
        fence.check()
    except TocsinError as error:
        return error
    return None


def _passing(failure: str, bounded: bool) -> str | None:
    """Return why a query failed, when that passes by itself; a bounded run does not wait for sources that are away."""
    if _BUSY.search(failure):
        return "the machine is too busy to start Python within the time that Spark gives it"
    away = [] if bounded else _AWAY.findall(failure)
    return str(away[-1]) if away else None


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
    reading = datasource.ReadSettings(plan, job.parallelism, job.max_lines, None if job.bounded else job.stalled_after_s)
    options = datasource.source_options(job.sources, reading)
    return spark.readStream.format(datasource.SOURCE_FORMAT).options(**options).load()


class _Batches:
    """Puts batches into the store; keeps the error of one that failed, which Spark would only quote. `done` is the last one.

    A store that is locked or away is waited for: nothing of the batch is in it then, so it is put in again.
    """

    def __init__(self, job: Job, fence: Fence) -> None:
        self._job, self._fence = job, fence
        self.failure: TocsinError | None = None
        self.done = -1
        self._pruned_at = float("-inf")
        self._clock = SteadyClock()
        self._at_work: AtWork | None = None
        self._aside = DeadLetterFile(job.plan, job.checkpoint, min((source.scope for source in job.sources), default="default"))

    def take(self, frame: DataFrame, batch: int) -> None:
        items = [received(row.kind, row.body) for row in frame.collect()]
        try:
            self._fence.check()
            self._job.on_batch(self._patiently(batch, lambda: self._put(items, batch)))
            self._prune()
        except TocsinError as error:
            if not (self._job.stop.is_set() and isinstance(error, StoreAway)):  # a stop ended the wait: no failure
                self.failure = error
            raise
        self.done = batch

    def judge_anew(self) -> None:
        """Let incidents be what these rules make of the alerts there are; nothing changes where they were decided by them."""
        try:
            revisions = self._patiently(NO_BATCH, self._regrouped)
        except StoreAway:
            if not self._job.stop.is_set():
                raise
            return
        if revisions:
            self._job.on_batch(BatchReport(NO_BATCH, 0, len({incident.id for incident in revisions}), tuple(_ended(revisions))))

    def _regrouped(self) -> Sequence[Incident]:
        with self._job.store.amending() as ledger:
            return list(regroup(self._job.plan, ledger, self._quarantine()))

    def give_back(self, why: str) -> None:
        """Forget the plan of the batch that could not be read, so that Spark makes another; say so."""
        batch = forget_plan(_offsets(self._job), self._is_stored)
        said = f"batch {batch} could not be read and is planned anew: {why}"
        self._job.on_batch(BatchReport(batch, 0, 0, (said,)))

    def watch(self, query: StreamingQuery) -> None:
        """Say it when the batch at work, or its planning, has just become overdue: a job that hangs would be as silent as one
        without input."""
        before, bound_s = self._at_work, self._job.overdue_after_s
        batch, planning = _at_work(query, _offsets(self._job))
        now = self._at_work = watched(before, batch, time.monotonic(), bound_s, planning)
        if now is not None and now.overdue and not (before and before.overdue):
            log, doing = log_of(self._job.checkpoint), query.status["message"]
            then = f"if it stays so and {log} does not say why, end tocsin and start it again: it goes on where it ended"
            what = "been at work" if not planning else "been planned, a source not saying what there is to read,"
            said = f"batch {now.batch} has {what} for {bound_s:.0f} s (Spark: {doing}); {then}"
            self._job.on_batch(BatchReport(now.batch, 0, 0, (said,)))

    def _put(self, items: Sequence[BatchRow], batch: int) -> BatchReport:
        lines = sum(each.lines for each in items if isinstance(each, Scanned))
        losses = [each for each in items if isinstance(each, InputLoss)]
        said = [each.sentence for each in losses] + [each.text for each in items if isinstance(each, InputNotice)]
        letters = [each for each in items if isinstance(each, DeadLetter)]
        quarantine = self._quarantine()
        findings = [each for each in items if isinstance(each, Verdict | Evidence | Roster | NotEvaluated)]
        with self._job.store.batch(self._id(batch), self._job.plan.hash) as ledger:
            revisions = list(group(findings, self._job.plan, ledger, quarantine))
            before = len(letters)
            letters += [each for each in quarantine.taken() if isinstance(each, DeadLetter)]
            revisions += self._aside.judged(letters[before:], ledger)
            ledger.put_losses(DataLoss(each.source_id, each.lost_from, each.lost_to, each.why) for each in losses)
            ledger.put_quarantined(letters, self._clock.now())
        said += [each.sentence for each in summed(letters)] + self._aside.misdated(items)
        self._aside.write(letters)
        return BatchReport(batch, lines, len({incident.id for incident in revisions}), said)

    def _quarantine(self) -> Quarantine:
        return Quarantine(redactor_of(self._job.plan.redaction))

    def _is_stored(self, batch: int) -> bool:
        return self._patiently(batch, lambda: self._job.store.has(self._id(batch)))

    def _patiently(self, batch: int, work: Callable[[], T]) -> T:
        """Return what `work` in the store returns; it is done again while the store is away, until a stop is asked for."""
        return until_back(work, self._job.stop.wait, lambda text: self._job.on_batch(BatchReport(batch, 0, 0, (text,))))

    def _prune(self) -> None:
        """Remove what is too old, a little now and then: no batch waits for much of it, nor for a store that is locked.

        A clock that has just jumped makes nothing old.
        """
        self._clock.check()
        if self._job.retention_s > 0 and time.monotonic() - self._pruned_at > PRUNE_EVERY_S:
            with suppress(StoreAway):
                self._job.store.prune(self._clock.now() - timedelta(seconds=self._job.retention_s))
            self._pruned_at = time.monotonic()

    def _id(self, batch: int) -> BatchId:
        return BatchId(query_id(_offsets(self._job)), batch)


def _ended(revisions: Iterable[Incident]) -> Iterator[str]:
    """Yield what is to be said of incidents that rules do not judge any longer."""
    for incident in revisions:
        if incident.why.endswith(NOT_JUDGED):
            yield f"{incident.id} ({incident.title}) is {incident.status}: {incident.why}"


def _at_work(query: StreamingQuery, checkpoint: Path) -> tuple[int | None, str]:
    """Return the batch that is planned or being planned, and not done, and the query's last report if it is being planned."""
    batch = at_work(checkpoint)
    if batch is not None or not query.status["isTriggerActive"]:
        return batch, ""
    report = query.lastProgress
    return done(checkpoint) + 1, "none" if report is None else str(report["timestamp"])


def _offsets(job: Job) -> Path:
    return job.checkpoint / QUERY


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
