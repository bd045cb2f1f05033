"""The streaming query: sources through the same stages as `replay()`, keyed by scope, into the incident store.

Each batch is one transaction: its findings, the incidents decided from them, and its id. After a crash Spark may repeat the
last batch: it is stored again, since the next batch continues from the state of the repeated one.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from engine import __version__
from engine.clock import SteadyClock
from engine.codec import dumps
from engine.errors import DataLoss, StoreAway, TocsinError
from engine.incident import NOT_JUDGED, group, regroup
from engine.match import redactor_of
from engine.model.incidents import Evidence, Incident, NotEvaluated, Roster, Verdict
from engine.model.pictures import StatedFact
from engine.model.quarantine import DeadLetter
from engine.model.records import Progress
from engine.model.rules import Plan
from engine.ports import Say
from engine.quarantine import Quarantine, summed
from engine.spark.attempts import Attempts
from engine.spark.audit_report import AuditReport
from engine.spark.checkpoints import CheckpointFiles, LocalCheckpoint, SharedMark, marked
from engine.spark.dead_letters import DeadLetterFile
from engine.spark.executors import watch_of
from engine.spark.failures import cannot_write, job_error, transient_cause
from engine.spark.fence import QUERY, Fence, fenced
from engine.spark.overdue import BatchActivity, check_overdue
from engine.spark.pace import PaceFile
from engine.spark.plans import done, forget_plan, query_id
from engine.spark.rows import SCHEMA, BatchCounts, BatchRow, InputLoss, InputNotice, counted, received
from engine.spark.slices import Scanned
from engine.spark.sources import SourceSpec
from engine.spark.spark_settings import is_local
from engine.store import Store
from engine.store.outage import until_back
from engine.store.store import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from engine.spark.query_activity import QueryActivity

T = TypeVar("T")

POLL_S = 0.2
PRUNE_EVERY_S = 60.0
STALLED_AFTER_S = 60.0
OVERDUE_AFTER_S = 300.0


NO_BATCH = -1  # the batch of a report about something else


class BatchReport(Struct, frozen=True):
    """What a batch read and decided, with messages for the operator.

    The report of a batch that could not be read, or that is overdue, has messages only. `batch` is NO_BATCH when the report is
    not about a batch. `incidents` counts those with a new revision. `is_stored`: the batch is in the store. `behind`: the
    streams that it did not read to their end. `counts`: its events, matches and late lines.
    """

    batch: int
    lines: int
    incidents: int
    messages: Sequence[str] = ()
    is_stored: bool = False
    amounts: Sequence[Scanned] = ()
    letters: Sequence[DeadLetter] = ()
    losses: int = 0
    behind: Sequence[Progress] = ()
    counts: BatchCounts = BatchCounts()


def _ignore(_: object) -> None:
    pass


def _do_nothing() -> None:
    pass


def _no_new_plan() -> Plan | None:
    return None


class Job(Struct, frozen=True):
    """Everything a run needs.

    Attributes:
        checkpoint: the folder of the job on this machine, for the plan, Spark's log and dead letters; and of the checkpoint,
            unless `files` has another place. The checkpoint belongs to this set of sources: input is not read twice, and
            changed rules continue from its offsets.
        files: the files of the checkpoint; None: they are in `checkpoint`.
        bounded: read the present input, take open events as complete, and end; otherwise run until `stop` is set.
        trigger_s: the time between two batches of an unbounded run.
        max_lines: the most lines that each source gives to one batch; None for no bound.
        max_bytes: the same in bytes, about.
        parallelism: the number of tasks that read.
        stalled_after_s: how long a source may be unreadable before that is an incident.
        overdue_after_s: how long a batch may run before the operator is warned.
        audited: some of the blocks that columns read are also read by the reference.
        retention_s: incidents that ended this long ago are removed from the store, some at a time; 0 for never.
        on_batch: called after each batch is in the store, and from another thread once for a batch that is overdue.
        on_trigger: called with the duration in seconds of each trigger that has ended, as far as Spark reports it.
        on_away: called after each attempt to write that ended because the store is away.
        renewed: called several times a second; a plan that it returns replaces `plan` from the next batch on.
        fence: holds checkpoint and store for this process; None: the run takes hold of them itself.
    """

    sources: Sequence[SourceSpec]
    plan: Plan
    store: Store
    checkpoint: Path
    bounded: bool
    trigger_s: float = 1.0
    max_lines: int | None = None
    max_bytes: int | None = None
    parallelism: int = 1
    stalled_after_s: float = STALLED_AFTER_S
    overdue_after_s: float = OVERDUE_AFTER_S
    audited: bool = False
    retention_s: float = 0.0
    on_batch: Callable[[BatchReport], None] = _ignore
    on_trigger: Callable[[float], None] = _ignore
    on_away: Callable[[], None] = _do_nothing
    renewed: Callable[[], Plan | None] = _no_new_plan
    stop: threading.Event = field(default_factory=threading.Event)
    fence: Fence | None = None
    files: CheckpointFiles | None = None

    @property
    def checkpoint_files(self) -> CheckpointFiles:
        """The files of the checkpoint."""
        return self.files or LocalCheckpoint(self.checkpoint)

    @property
    def query_files(self) -> CheckpointFiles:
        """The part of the checkpoint that Spark writes."""
        return self.checkpoint_files.within(QUERY)

    def say(self, sentence: str) -> None:
        """Report a sentence that belongs to no batch to `on_batch`."""
        self.on_batch(BatchReport(NO_BATCH, 0, 0, (sentence,)))


def log_of(checkpoint: Path) -> Path:
    """Return the file of Spark's own messages."""
    return checkpoint / "spark.log"


def run(job: Job, spark: SparkSession) -> None:
    """Run `job` to its end, with a new query on the same checkpoint whenever its plan is renewed.

    A source may be away by the time a planned batch is read: an unbounded run then plans the batch anew, and so waits as it
    does for any source that is away. Any run does the same on a machine that is too busy, after a pause. After many such
    attempts in a row it gives up (see Attempts).

    Whoever stops a job may have stopped Java and the workers with it (systemd signals the whole group), so an error after the
    stop is no failure: the next run repeats the batch.

    Raises FenceError or StoreLost when checkpoint and store do not belong together or were removed, else the TocsinError that
    made the query fail.
    """
    if job.stop.is_set():  # the stop came while Spark started
        return None
    if job.fence is None:
        with fence_of(job.store, job.checkpoint, job.say, job.stop.wait, job.files) as fence:
            return _run_fenced(job, spark, fence)
    return _run_fenced(job, spark, job.fence)


@contextmanager
def fence_of(
    store: Store,
    checkpoint: Path,
    say: Say,
    pause: Callable[[float], object] = time.sleep,
    files: CheckpointFiles | None = None,
) -> Iterator[Fence]:
    """Hold store and checkpoint for this process (see fence.fenced). Raises TocsinError when that is not possible."""
    with ExitStack() as stack:
        try:
            fence = stack.enter_context(fenced(store, checkpoint, say, pause, files))
        except OSError as error:
            raise cannot_write(Path(error.filename or checkpoint).parent, error.strerror or str(error)) from None
        yield fence


def _run_fenced(job: Job, spark: SparkSession, fence: Fence) -> None:
    plan: Plan | None = job.plan
    while plan is not None and not job.stop.is_set():  # the stop may come while the plan is replaced
        job = replace(job, plan=plan, fence=fence, store=fence.store)
        plan = _run_until_renewed(job, spark, fence)


def _run_until_renewed(job: Job, spark: SparkSession, fence: Fence) -> Plan | None:
    """Run `job` with its plan; return the plan that replaces it, None at the end of the job."""
    fence.check()
    batches = _BatchWriter(job, fence)
    batches.regroup()
    attempts = Attempts()
    while not job.stop.is_set():
        try:
            return _run_query(job, spark, batches, fence)
        except _TransientError as transient:
            pause_s = attempts.pause_s(why := str(transient), batches.done)
        batches.replan(why)
        job.stop.wait(pause_s)
    return None


class _TransientError(Exception):
    """A query failed for a reason that passes by itself, which the message names."""


def _run_query(job: Job, spark: SparkSession, batches: _BatchWriter, fence: Fence) -> Plan | None:
    """Run one query of `job`; return the plan that replaces its plan, None at the end of the job.

    Raises _TransientError, or the TocsinError that made the query fail.
    """
    from engine.spark.query_activity import QueryActivity  # noqa: PLC0415  (needs pyspark)

    try:
        with closing(QueryActivity(spark, done(job.query_files))) as activity:
            query = _start_query(job, spark, batches)
            watch = _QueryWatch(job, spark, query, activity)
            while not query.awaitTermination(POLL_S):
                if (error := _fence_error(fence) or watch.look()) is not None:
                    job.stop.set()  # ends a wait inside a batch
                    query.stop()
                    raise error
                plan = None if job.stop.is_set() else job.renewed()
                if plan is not None or job.stop.is_set():
                    query.stop()
                    return plan
    except TocsinError:
        raise
    except Exception as error:
        if (fence_error := _fence_error(fence)) is not None:
            raise fence_error from None
        if batches.failure is not None:
            raise batches.failure from error
        if job.stop.is_set():
            return None
        if (why := transient_cause(str(error), job.bounded)) is not None:
            raise _TransientError(why) from error
        raise job_error(str(error), job.checkpoint, log_of(job.checkpoint)) from error
    return None


def _fence_error(fence: Fence) -> TocsinError | None:
    """Return the error of a store or checkpoint that was removed or replaced; None while both are in place."""
    try:
        fence.check()
    except TocsinError as error:
        return error
    return None


def plan_file(plan: Plan, folder: Path) -> Path:
    """Write `plan` to `folder` for the workers, under a name that contains its hash; return the path.

    Raises TocsinError when the folder cannot be written to.
    """
    text = dumps(plan)
    path = folder / f"plan-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)  # atomic: another process sees the whole file or none
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise cannot_write(folder, error.strerror or str(error)) from None
    return path


def _start_query(job: Job, spark: SparkSession, batches: _BatchWriter) -> StreamingQuery:
    path = plan_file(job.plan, job.checkpoint)
    spark.sparkContext.addFile(str(path))  # executors fetch it by its name
    on_cluster = not is_local(spark.sparkContext.master)
    mark = _mark(job.checkpoint) if on_cluster and job.checkpoint_files.is_local else None
    rows = _input(job, spark, path.name, on_cluster, mark)
    from engine.spark.processor import ScopeProcessor  # noqa: PLC0415  (needs pyspark)

    processor = ScopeProcessor(path.name, job.bounded, job.checkpoint_files.location, mark)
    findings = rows.groupBy("scope").transformWithState(processor, SCHEMA, "Update", "None")
    writer = findings.writeStream.outputMode("update").option("checkpointLocation", job.query_files.location)
    trigger = {"availableNow": True} if job.bounded else {"processingTime": f"{round(job.trigger_s * 1000)} milliseconds"}
    return writer.trigger(**trigger).foreachBatch(batches.take).start()


def _mark(folder: Path) -> SharedMark:
    try:
        return marked(folder.resolve())
    except OSError as error:
        raise cannot_write(folder, error.strerror or str(error)) from None


def _input(job: Job, spark: SparkSession, plan: str, on_cluster: bool, mark: SharedMark | None) -> DataFrame:
    """Return the stream of the rows of all sources, with ticks when the input has no end."""
    from engine.spark import datasource  # noqa: PLC0415

    spark.dataSource.register(datasource.SourceStream)
    stalled_after_s = None if job.bounded else job.stalled_after_s
    reading = datasource.ReadSettings(
        plan, job.parallelism, job.max_lines, stalled_after_s, job.audited, on_cluster, __version__, mark, job.max_bytes
    )
    options = datasource.source_options(job.sources, reading)
    return spark.readStream.format(datasource.SOURCE_FORMAT).options(**options).load()


class _QueryWatch:
    """Reports once what is out of the ordinary about a query that runs: a batch, or its planning, that is overdue, since a job
    that hangs would be as silent as one without input; and a cluster without executors."""

    def __init__(self, job: Job, spark: SparkSession, query: StreamingQuery, activity: QueryActivity) -> None:
        self._job, self._query, self._activity = job, query, activity
        self._executors = watch_of(spark, job.say)
        self._batch: BatchActivity | None = None

    def look(self) -> TocsinError | None:
        """Report what is to be reported; return the error that the run has to end with, None while it goes on."""
        for duration_s in self._activity.triggers_s(self._query):
            self._job.on_trigger(duration_s)
        now_s = time.monotonic()
        self._look_at_batch(now_s)
        return self._executors.look(now_s)

    def _look_at_batch(self, now_s: float) -> None:
        before, bound_s = self._batch, self._job.overdue_after_s
        batch, planning = self._activity.unfinished_batch(self._query)
        now = self._batch = check_overdue(before, batch, now_s, bound_s, planning)
        if now is not None and now.overdue and not (before and before.overdue):
            log, spark_status = log_of(self._job.checkpoint), self._query.status["message"]
            advice = (
                f"if it stays so and {log} does not show the cause, end tocsin and start it again: it goes on where it ended"
            )
            activity = "been at work" if not planning else "been planned, a source not saying what there is to read,"
            message = f"batch {now.batch} has {activity} for {bound_s:.0f} s (Spark: {spark_status}); {advice}"
            self._job.on_batch(BatchReport(now.batch, 0, 0, (message,)))


class _BatchWriter:
    """Writes batches into the store.

    While the store is locked or away, the write is repeated: nothing of the batch is in the store then. `done` is the last
    batch that was written, -1 for none; `failure` is the error that a batch failed with, of which Spark keeps only the text.
    """

    def __init__(self, job: Job, fence: Fence) -> None:
        self._job, self._fence = job, fence
        self.failure: TocsinError | None = None
        self.done = -1
        self._pruned_at_s = float("-inf")
        self._clock = SteadyClock()
        self._audit = AuditReport()
        self._pace = PaceFile(job.max_bytes is not None)
        self._dead_letters = DeadLetterFile(
            job.plan, job.checkpoint, min((source.scope for source in job.sources), default="default")
        )

    def take(self, frame: DataFrame, batch: int) -> None:
        items = [received(row.kind, row.body) for row in frame.collect()]
        self._pace.take(items)
        try:
            self._fence.check()
            self._job.on_batch(self._retry_while_away(batch, lambda: self._put(items, batch)))
            self._prune()
        except TocsinError as error:
            if not (self._job.stop.is_set() and isinstance(error, StoreAway)):  # a stop that ended the wait is no failure
                self.failure = error
            raise
        self.done = batch

    def regroup(self) -> None:
        """Decide the incidents again from the stored alerts by the rules of this plan; scopes last decided by them do not
        change."""
        try:
            revisions = self._retry_while_away(NO_BATCH, self._regroup)
        except StoreAway:
            if not self._job.stop.is_set():
                raise
            return
        if revisions:
            self._job.on_batch(
                BatchReport(NO_BATCH, 0, len({incident.id for incident in revisions}), tuple(_sentences_of_unjudged(revisions)))
            )

    def _regroup(self) -> Sequence[Incident]:
        with self._job.store.amending() as ledger:
            ledger.put_explained(self._job.plan.explained_rules())
            return list(regroup(self._job.plan, ledger, self._quarantine()))

    def replan(self, why: str) -> None:
        """Remove the plan of the batch that could not be read, so that Spark plans it again, and report that with the
        reason."""
        batch = forget_plan(self._job.query_files, self._is_stored)
        message = f"batch {batch} could not be read and is planned anew: {why}"
        self._job.on_batch(BatchReport(batch, 0, 0, (message,)))

    def _put(self, items: Sequence[BatchRow], batch: int) -> BatchReport:
        amounts = [item for item in items if isinstance(item, Scanned)]
        losses = [item for item in items if isinstance(item, InputLoss)]
        messages = [item.sentence for item in losses] + [item.text for item in items if isinstance(item, InputNotice)]
        letters = [item for item in items if isinstance(item, DeadLetter)]
        quarantine = self._quarantine()
        findings = [item for item in items if isinstance(item, Verdict | Evidence | Roster | NotEvaluated | StatedFact)]
        with self._job.store.batch(self._id(batch), self._job.plan.hash) as ledger:
            revisions = list(group(findings, self._job.plan, ledger, quarantine))
            count = len(letters)
            letters += [item for item in quarantine.taken() if isinstance(item, DeadLetter)]
            revisions += self._dead_letters.incidents_of(letters[count:], ledger)
            ledger.put_losses(DataLoss(item.source_id, item.lost_from, item.lost_to, item.why) for item in losses)
            ledger.put_quarantined(letters, self._clock.now())
        messages += [item.sentence for item in summed(letters)] + self._dead_letters.misdated_sentences(items)
        messages += self._audit.sentences(items)
        self._dead_letters.write(letters)
        lines, changed = sum(amount.lines for amount in amounts), len({incident.id for incident in revisions})
        behind = [item for item in items if isinstance(item, Progress)]
        return BatchReport(batch, lines, changed, messages, True, amounts, letters, len(losses), behind, counted(items))

    def _quarantine(self) -> Quarantine:
        return Quarantine(redactor_of(self._job.plan.redaction))

    def _is_stored(self, batch: int) -> bool:
        return self._retry_while_away(batch, lambda: self._job.store.has_batch(self._id(batch)))

    def _retry_while_away(self, batch: int, work: Callable[[], T]) -> T:
        """Return the result of `work` on the store, repeated while the store is away. Raises StoreAway after a stop."""
        job = self._job

        def pause(seconds: float) -> bool:
            job.on_away()
            return job.stop.wait(seconds)

        return until_back(work, pause, lambda text: job.on_batch(BatchReport(batch, 0, 0, (text,))))

    def _prune(self) -> None:
        """Remove a few of the incidents that are over for longer than the retention: no batch waits long, nor for a locked
        store.

        The steady clock keeps a jump of the wall clock from making incidents old.
        """
        self._clock.check()
        if self._job.retention_s > 0 and time.monotonic() - self._pruned_at_s > PRUNE_EVERY_S:
            with suppress(StoreAway):
                self._job.store.prune(self._clock.now() - timedelta(seconds=self._job.retention_s))
            self._pruned_at_s = time.monotonic()

    def _id(self, batch: int) -> BatchId:
        return BatchId(self._query_id, batch)

    @cached_property
    def _query_id(self) -> str:
        """The id of the query, from the first batch on."""
        return query_id(self._job.query_files)


def _sentences_of_unjudged(revisions: Iterable[Incident]) -> Iterator[str]:
    """Yield a sentence for each incident that ended because no rule judges it any longer."""
    for incident in revisions:
        if incident.why.endswith(NOT_JUDGED):
            yield f"{incident.id} ({incident.title}) is {incident.status}: {incident.why}"
