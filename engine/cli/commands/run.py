"""Watch the logs named in tocsin.yml: the Spark job, the incident store, and who is told."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import BY_SIGNAL, FAILURE, FOUND, NOTHING_FOUND
from engine.cli.inputs import SourceInput, checks, opened, own_paths, unreadable
from engine.cli.notifying import build, drain, explained, running
from engine.cli.output import count
from engine.cli.receiving import open_receivers
from engine.cli.renewing import Renewing
from engine.cli.report import render_incident
from engine.cli.rulebook import not_empty, with_layouts, with_speakers
from engine.cli.signals import Signals, handled
from engine.cli.terminal import show
from engine.config import Settings, load
from engine.deliver import Notifier
from engine.dsl import builtin_rules, load_cached
from engine.errors import SourceError, StoreAway, StoreError, StoreLost
from engine.model.notifications import Notification, Reason
from engine.model.rules import Plan
from engine.rights import keep_private, narrow
from engine.spark.fence import Fence, refuse_lost_store
from engine.spark.job import BatchReport, Job, fence_of, log_of, plan_file
from engine.spark.job import run as run_job
from engine.spark.session import Resources, check_runtime, start, stop
from engine.store import Store
from engine.store.file import files_of
from engine.store.patience import until_back
from engine.store.store import store_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = typer.Typer()

BUSY_S = 5.0  # how long one try to write waits for another process: it is tried again, and said after a while

HELP = """\
Watch the logs that a configuration names and tell each incident once, and again only when its status, cause or severity
changes, or after hours in which it stays open. Who is told, and after what waits, is said by `route` and `receivers`
(docs/notifications.md); with --once the waits count as elapsed. Needs Java 17 or newer. What was read is remembered next to the
incident store, so a restart goes on where it ended. Rule files that change are taken up as it runs; while they are wrong, it
says so and goes on with those before. SIGHUP has them read at once, SIGQUIT shows what every thread is doing, SIGTERM and
Ctrl-C end the run (a second one at once). One run at a time has a store and a checkpoint.

\b
Examples:
  tocsin run -c tocsin.yml
  tocsin run -c tocsin.yml --once
  tocsin run -c tocsin.yml --dry-run

\b
Exit codes: 0 nothing told, 1 (--once) incidents told, 2 usage or bad rules or
configuration, 3 failure, or some input could not be read. Live runs end with 0;
with --once a run that was told to end before its end has 130 (Ctrl-C) or 143.
"""


@app.command(help=HELP)
def run(
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, tell, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, say what would be read, and end.")] = False,
) -> None:
    """Run the job of `config`; the help text is HELP."""
    settings = load(config, checks())
    plan = _plan(settings)
    sources = [opened(source, once, own_paths(settings)) for source in settings.sources]
    refused = _check(sources, once, dry_run)
    check_runtime()
    if dry_run:
        _announce(settings, plan, sources)
        raise typer.Exit(FAILURE if refused else NOTHING_FOUND)
    with handled(_say) as signals:
        told = _run(settings, plan, sources, once, signals)
    if once and signals.ended_by is not None:
        raise typer.Exit(BY_SIGNAL + signals.ended_by)
    raise typer.Exit(FAILURE if refused else FOUND if told and once else NOTHING_FOUND)


def _run(settings: Settings, plan: Plan, sources: Sequence[SourceInput], once: bool, signals: Signals) -> int:
    """Run the job, and the notifier beside it; return how many incidents a run that ends has told."""
    _keep_private(settings)
    receivers = open_receivers(settings.receivers, _show)
    refuse_lost_store(store_path(settings.store), settings.checkpoint)
    began = time.perf_counter()
    try:
        store = until_back(lambda: Store.open(settings.store, BUSY_S), signals.stop.wait, _say)
    except StoreAway:
        if signals.stop.is_set():
            return 0
        raise
    try:
        with fence_of(store, settings.checkpoint, _say) as fence:
            notifier = build(store, settings, plan, receivers, _say, once)
            _watch(_job(settings, plan, sources, once, signals, store, notifier, fence), settings, notifier, began)
            told = drain(notifier, _say) if once and not signals.stop.is_set() else 0
    except StoreLost as lost:
        raise StoreError(f"{lost}; {_saved(store)}") from None
    counted = f"{told} told, " if once else ""
    _say(f"{counted}{time.perf_counter() - began:.1f} s in all; incidents are kept in {settings.store}")
    store.close()
    return told


def _job(
    settings: Settings,
    plan: Plan,
    sources: Sequence[SourceInput],
    once: bool,
    signals: Signals,
    store: Store,
    notifier: Notifier,
    fence: Fence,
) -> Job:
    files = Renewing(_rule_paths(settings), plan, lambda: _plan(settings), _say, asked=signals.reload)
    return Job(
        sources=[spec for source in sources for spec in source.specs],
        plan=plan,
        store=store,
        checkpoint=settings.checkpoint,
        bounded=once,
        trigger_s=settings.trigger_s,
        max_lines=settings.batch_lines,
        parallelism=1,
        retention_s=settings.retention_s,
        on_batch=lambda report: _report(report, notifier),
        renewed=(lambda: None) if once else lambda: _renewed(files, notifier),
        stop=signals.stop,
        fence=fence,
    )


def _watch(job: Job, settings: Settings, notifier: Notifier, began: float) -> None:
    """Start Spark, and run `job` on it to its end."""
    plan_file(job.plan, job.checkpoint)  # it cannot be written to? That is known before Spark is up
    if job.stop.is_set() or (spark := _started(settings, job)) is None:
        return
    _say(f"Spark is up after {time.perf_counter() - began:.1f} s; its messages go to {log_of(job.checkpoint)}")
    try:
        with nullcontext() if job.bounded else running(notifier, _say):
            run_job(job, spark)
    finally:
        stop(spark)


def _started(settings: Settings, job: Job) -> SparkSession | None:
    """Start Spark on a thread of its own: on this one PySpark would take Ctrl-C for itself, and a signal would break into the
    start. None when somebody ended Java, too, while the run was told to end."""
    resources = Resources(settings.cores, settings.partitions, settings.heap, log_of(settings.checkpoint))
    with ThreadPoolExecutor(1, "spark-start") as starter:
        try:
            return starter.submit(start, resources).result()
        except Exception:
            if job.stop.is_set():
                return None
            raise


def _saved(store: Store) -> str:
    """Save what a lost store held; return what is to be said of that."""
    try:
        kept = store.save()
    except StoreError as error:
        return f"what it held could not be saved ({error})"
    if kept == store.path:
        return "what it held has been put back there: start again, and the run goes on where it ended"
    return f"what it held is kept in {kept}: to go on with that, put it in its place and start again (docs/reliability.md)"


def _keep_private(settings: Settings) -> None:
    """Keep what is written, and what earlier runs have written, to this user; say what was not."""
    keep_private()
    store = store_path(settings.store)
    for place in (settings.checkpoint, *(files_of(store) if store is not None else ())):
        for sentence in narrow(place).sentences:
            _say(sentence)


def _plan(settings: Settings) -> Plan:
    """Return the rules of the configuration. Raises RulesError, and UsageError when there is none at all or a source may
    speak for a component that they do not have."""
    paths = _rule_paths(settings)
    plan = with_layouts(not_empty(load_cached(paths, overrides=settings.overrides), paths))
    with_speakers(plan, (source.labels for source in settings.sources))
    return replace(plan, context={**plan.context, **settings.context}, redaction=settings.redaction)


def _rule_paths(settings: Settings) -> list[Path]:
    return [path or builtin_rules() for path in settings.rules]


def _renewed(files: Renewing, notifier: Notifier) -> Plan | None:
    """Return the rules that take over, and tell the notifier of them; None while none do."""
    plan = files.renewed()
    if plan is not None:
        notifier.rules_changed(explained(plan))
    return plan


def _check(sources: Sequence[SourceInput], once: bool, dry_run: bool) -> list[SourceError]:
    """Tell what cannot be read and return it. Raises SourceMissing when there is nothing at all to read, and never will be."""
    errors = unreadable(sources, once, dry_run)
    for error in errors:
        _say(str(error))
    return errors


def _announce(settings: Settings, plan: Plan, sources: Sequence[SourceInput]) -> None:
    """Print what a run would do."""
    print(f"rules     {len(plan.signatures)} signatures, {len(plan.correlations)} correlations")
    for said, source in zip(settings.sources, sources, strict=True):
        print(f"source    {said.type} of cluster {said.scope}: {source.summary}")
        for found in source.found:
            print(f"          {found}")
    print(f"store     {settings.store}")
    print(f"offsets   {settings.checkpoint}")
    print(f"receivers {', '.join(receiver.name for receiver in settings.receivers)}")


def _report(report: BatchReport, notifier: Notifier) -> None:
    """Say what a batch brought, and let whoever is to be told of it be told now."""
    for sentence in report.said:
        _say(sentence)
    if report.lines or report.incidents:
        _say(f"batch {report.batch}: {count(report.lines, 'line')}, {count(report.incidents, 'incident')} new or changed")
    if report.incidents:
        notifier.wake()


def _show(notification: Notification) -> None:
    if notification.reason not in (Reason.OPENED, Reason.BACKFILL, Reason.DIGEST):
        _say(f"{notification.incident.id} {notification.reason.value.replace('_', ' ')}: {notification.news}")
    show(lambda width: render_incident(notification.incident, width, notification.links).append("\n"))
    sys.stdout.flush()


def _say(sentence: str) -> None:
    print(f"tocsin: {sentence}", file=sys.stderr, flush=True)
