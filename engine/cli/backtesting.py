"""Run the job of a configuration over its history, apart from the real store and checkpoint, once for each set of rules."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.cli.inputs import SourceInput, open_input, surroundings, unreadable
from engine.cli.output import count
from engine.config import Settings
from engine.errors import SourceError, UsageError
from engine.model.incidents import Incident
from engine.model.phrases import lasting
from engine.model.rules import Plan
from engine.ports import Say
from engine.spark.job import BatchReport, Job
from engine.spark.job import run as run_job
from engine.store import Store
from engine.store_address import StoreAddress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ASKING = ("connect", "kafka-cluster")  # what these were told is not kept by anybody
_EVERY_S = 5.0  # between two reports of progress


class BacktestInput(Struct, frozen=True):
    """The input of a backtest: its sources, and what of them cannot be read."""

    sources: tuple[SourceInput, ...]
    errors: tuple[SourceError, ...]


def history_of(settings: Settings, since: datetime | None, say: Say) -> BacktestInput:
    """Open the sources of a configuration from `since` on; None: from their beginning.

    Raises UsageError when none of them has a history, SourceMissing when there is nothing to read.
    """
    start = "earliest" if since is None else since.isoformat()
    asked = [source for source in settings.sources if source.type in _ASKING]
    for source in asked:
        say(f"{source.type} of cluster {source.scope} is left out: it has no history (docs/asking.md has `record`)")
    logs = [replace(source, start=start) for source in settings.sources if source not in asked]
    if not logs:
        raise UsageError("none of the sources has a history to go through")
    around = replace(surroundings(settings), offsets={})
    sources = tuple(open_input(source, True, around) for source in logs)
    errors = tuple(unreadable(sources, True))
    for error in errors:
        say(str(error))
    return BacktestInput(sources, errors)


class StartedSpark(Protocol):
    """Spark, as a backtest needs it; see SparkStart."""

    def session(self) -> SparkSession | None:
        """Return the session; None when the start failed after a stop."""

    def parallelism(self) -> int:
        """Return the number of tasks that read."""


def incidents_of(
    history: BacktestInput,
    settings: Settings,
    plans: Sequence[tuple[str, Plan]],
    spark: StartedSpark,
    stop: threading.Event,
    say: Say,
) -> list[list[Incident]]:
    """Return the incidents of `history` by each of the named `plans`; fewer lists than plans after a stop.

    Args:
        settings: those of `apart`. The store of a plan is beside its store, as `NAME.db`, and its checkpoint `NAME.checkpoint`.
    """
    results, session = list[list[Incident]](), spark.session()
    for name, plan in plans:
        if session is None or stop.is_set():
            break
        own, advance = apart(settings, settings.checkpoint.parent, name), HistoryProgress(name, say)
        results.append(_incidents(history, own, plan, session, spark.parallelism(), stop, advance))
    return results[:-1] if stop.is_set() else results


class HistoryProgress:
    """Reports how far a run over history has come, and how long it takes still."""

    def __init__(self, name: str, say: Say) -> None:
        self._name, self._say = name, say
        self._began_at_s = self._said_at_s = time.monotonic()
        self._lines = 0
        self._most_left = 0

    def batch(self, report: BatchReport) -> None:
        """Take the report of a batch."""
        for sentence in report.messages:
            self._say(sentence)
        self._lines += report.lines
        left = sum(progress.end - progress.read_to for progress in report.behind)
        self._most_left = max(self._most_left, left)
        now_s = time.monotonic()
        if report.is_stored and now_s - self._said_at_s >= _EVERY_S:
            self._said_at_s = now_s
            self._say(f"{self._name} rules: {count(self._lines, 'line')}{self._time_left(left, now_s - self._began_at_s)}")

    def _time_left(self, left: int, passed_s: float) -> str:
        """Return the rest in words; empty before a part of what was left is done. What is left is measured in the positions of
        the sources, bytes or records."""
        done = self._most_left - left
        return f", {lasting(timedelta(seconds=round(passed_s * left / done)))} left" if left and done else ""


def _incidents(
    history: BacktestInput,
    settings: Settings,
    plan: Plan,
    session: SparkSession,
    parallelism: int,
    stop: threading.Event,
    advance: HistoryProgress,
) -> list[Incident]:
    store = Store.open(settings.store)
    try:
        job = Job(
            sources=[spec for source in history.sources for spec in source.specs],
            plan=plan,
            store=store,
            checkpoint=settings.checkpoint,
            bounded=True,
            max_lines=settings.batch_lines,
            max_bytes=settings.batch_bytes,
            parallelism=parallelism,
            on_batch=advance.batch,
            stop=stop,
        )
        run_job(job, session)
        return list(store.incidents())
    finally:
        store.close()


def apart(settings: Settings, folder: Path, name: str) -> Settings:
    """Return the settings with a store and a checkpoint of their own in `folder`."""
    store = StoreAddress(f"sqlite:///{folder / name}.db")
    return replace(settings, store=store, checkpoint=folder / f"{name}.checkpoint", checkpoint_url="")
