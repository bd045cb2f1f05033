"""Serve the metrics and health of a run, and send its heartbeats, on threads beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.cli.state_size import checkpoint_bytes, store_bytes
from engine.config import HeartbeatSettings, MetricsSettings, Settings
from engine.deliver import DeliveryNotice
from engine.errors import RuntimeMissing, StoreError, UnknownIncident
from engine.metrics.health import Health
from engine.metrics.status import JobRecord, NotifierRecord, StatusClock
from engine.model.notifications import DeliveryState, Reason
from engine.model.statuses import JobStatus, NotifierStatus
from engine.ports import Say
from engine.secrets import revealed
from engine.store import Store
from engine.store.keeping import this_process

if TYPE_CHECKING:
    from engine.metrics.run import RunMetrics
    from engine.spark.job import BatchReport  # a process that only notifies does without


class Monitoring:
    """The health of a run, and its metrics if the configuration has the section `metrics`.

    It can run before the store is open (see `opened`).

    Raises RuntimeMissing when a package that the metrics need is not installed.
    """

    def __init__(
        self, settings: Settings, store: Store | None = None, *, has_job: bool = True, has_notifier: bool = True
    ) -> None:
        self._settings, self._store = settings, store
        self._health = Health(self._read_store, has_job, has_notifier)
        self._job = JobRecord(this_process(), _now) if has_job else None
        self._notifier = NotifierRecord(this_process(), _now)
        self._job_clock, self._notifier_clock = StatusClock(time.monotonic), StatusClock(time.monotonic)
        self._metrics = None if settings.metrics is None else _run_metrics()
        if store is not None:
            self.opened(store)

    def opened(self, store: Store) -> None:
        """Take the store, whose metrics are collected from now on."""
        self._store = store
        if self._metrics is not None:
            sizes = {
                "store": lambda: store_bytes(store, self._settings.store.path),
                "checkpoint": lambda: checkpoint_bytes(self._settings.checkpoint),
            }
            self._metrics.collect_from(store, sizes)

    def _read_store(self) -> None:
        if self._store is None:
            raise StoreError(f"{self._settings.store}: the incident store is not open yet")
        self._store.check_file()
        self._store.check_readable()

    def job_started(self) -> None:
        """Take the start of the job, once it has store and checkpoint for itself."""
        if self._job is not None:
            self._put(self._job.status())

    def batch_reported(self, report: BatchReport) -> None:
        """Take the report of a batch."""
        if not report.is_stored:
            return
        self._health.job_works()
        if self._metrics is not None:
            self._metrics.stored(report.incidents, report.letters, report.losses)
            for amount in report.amounts:
                self._metrics.read(amount.source_id, amount.lines, amount.bytes)
            self._metrics.add_counts(report.counts.events, report.counts.matches, report.counts.late)
        if self._job is not None:
            for amount in report.amounts:
                self._job.read(amount.source_id, amount.lines, amount.bytes, amount.newest)
            self._job.matched(report.counts.matches)
            self._job.stored({progress.source_id: progress.end - progress.read_to for progress in report.behind})
            if self._job_clock.is_due():
                self._put(self._job.status())

    def triggered(self, seconds: float) -> None:
        """Take the duration of a trigger."""
        if self._metrics is not None:
            self._metrics.triggered(seconds)
        if self._job is not None:
            self._job.triggered(seconds)

    def attempted(self, notice: DeliveryNotice) -> None:
        """Take the outcome of an attempt to notify a receiver."""
        if self._metrics is None:
            return
        entry, state = notice.entry, notice.receipt.state
        self._metrics.attempted(entry, state)
        if state is DeliveryState.DELIVERED and entry.reason is Reason.OPENED and self._store is not None:
            with suppress(StoreError, UnknownIncident):  # it may be gone from the store meanwhile
                first = self._store.acts().incident(entry.incident).first_seen
                if first is not None:
                    self._metrics.told(entry.receiver, first)

    def notifier_works(self) -> None:
        """Take a sign of life of the notifier."""
        self._health.notifier_works()

    def notifier_stepped(self) -> None:
        """Take a step of the notifier that sends: a sign of life that is stored for others now and then."""
        self._health.notifier_works()
        if self._notifier_clock.is_due():
            self._put(self._notifier.status())

    def _put(self, status: JobStatus | NotifierStatus) -> None:
        if self._store is not None:
            with suppress(StoreError):  # whoever needs the store reports that
                self._store.statuses().put(status)

    def job_works(self) -> None:
        """Take a sign of life of the job."""
        self._health.job_works()

    def waiting(self, stop: threading.Event) -> Callable[[float], bool]:
        """Return a function that waits between two attempts to reach a store that is away: it takes the attempt as a sign of
        life, waits for a number of seconds, and returns whether `stop` is set."""

        def pause(seconds: float) -> bool:
            self.job_works()
            self.notifier_works()
            return stop.wait(seconds)

        return pause

    def exposition(self) -> bytes:
        """Return the metrics in the text format of Prometheus; empty when nothing is collected."""
        return self._metrics.exposition() if self._metrics is not None else b""

    @contextmanager
    def running(self, say: Say) -> Iterator[None]:
        """Serve metrics and health and send heartbeats while the body runs, as far as the configuration has them.

        Raises ListenError when the address cannot be listened on.
        """
        with ExitStack() as stack:
            if self._settings.metrics is not None:
                stack.enter_context(self._serving(self._settings.metrics, say))
            if self._settings.heartbeat is not None:
                stack.enter_context(self._beating(self._settings.heartbeat, say))
            yield

    @contextmanager
    def _serving(self, settings: MetricsSettings, say: Say) -> Iterator[None]:
        try:
            from engine.web.health import health_application  # noqa: PLC0415 - the package is optional
            from engine.web.server import listen_anywhere, serving  # noqa: PLC0415
        except ImportError:
            raise RuntimeMissing("`metrics` needs the packages starlette and uvicorn: pip install 'tocsin[web]'") from None
        listener = listen_anywhere(settings.host, settings.port, "metrics.listen")
        application = health_application(self.exposition, self._health.hangs, self._health.problems)
        with serving(application, listener, "metrics"):
            say(f"metrics and health are at {listener.address}metrics, healthz and readyz")
            yield

    @contextmanager
    def _beating(self, settings: HeartbeatSettings, say: Say) -> Iterator[None]:
        from engine.metrics.heartbeat import beat  # noqa: PLC0415 - loads the HTTP client

        stop = threading.Event()
        arguments = (revealed(settings.url), self._health.problems, settings.every_s, stop, say)
        threading.Thread(target=beat, args=arguments, name="heartbeat", daemon=True).start()
        try:
            yield
        finally:
            stop.set()


def _run_metrics() -> RunMetrics:
    try:
        from engine.metrics import run  # noqa: PLC0415 - the package is optional
    except ImportError:
        raise RuntimeMissing("`metrics` needs the package prometheus-client: pip install 'tocsin[web]'") from None
    return run.RunMetrics(_now)


def _now() -> datetime:
    return datetime.now(UTC)
