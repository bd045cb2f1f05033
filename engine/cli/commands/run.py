"""Watch the logs named in tocsin.yml: the Spark job, the incident store, and who is told."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from engine.cli.exits import FAILURE, FOUND, NOTHING_FOUND
from engine.cli.inputs import Input, checks, opened, unreadable
from engine.cli.notifying import build, drain, explained, running
from engine.cli.output import count
from engine.cli.receiving import open_receivers
from engine.cli.renewing import Renewing
from engine.cli.report import render_incident
from engine.cli.rulebook import with_layouts
from engine.cli.terminal import show
from engine.config import Settings, load
from engine.deliver import Notifier
from engine.dsl import builtin_rules, load_cached
from engine.errors import SourceError
from engine.model.notifications import Notification, Reason
from engine.model.rules import Plan
from engine.spark.job import BatchReport, Job, log_of, plan_file
from engine.spark.job import run as run_job
from engine.spark.session import Resources, check_runtime, start, stop
from engine.store import Store

app = typer.Typer()

HELP = """\
Watch the logs that a configuration names and tell each incident once, and again only when its status, cause or severity
changes, or after hours in which it stays open. Who is told, and after what waits, is said by `route` and `receivers`
(docs/notifications.md); with --once the waits count as elapsed. Needs Java 17 or newer. What was read is remembered next to the
incident store, so a restart goes on where it ended. Rule files that change are taken up as it runs; while they are wrong, it
says so and goes on with those before.

\b
Examples:
  tocsin run -c tocsin.yml
  tocsin run -c tocsin.yml --once
  tocsin run -c tocsin.yml --dry-run

\b
Exit codes: 0 nothing told, 1 (--once) incidents told, 2 usage or bad rules or
configuration, 3 failure, or some input could not be read. Live runs end with 0.
"""


@app.command(help=HELP)
def run(
    config: Annotated[Path, typer.Option("-c", "--config", metavar="FILE", help="The configuration.")] = Path("tocsin.yml"),
    once: Annotated[bool, typer.Option("--once", help="Read what is there, tell, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, say what would be read, and end.")] = False,
) -> None:
    """Run the job of `config`; the help text is HELP."""
    settings = load(config, checks())
    plan = _plan(settings)
    sources = [opened(source, once) for source in settings.sources]
    refused = _check(sources, once, dry_run)
    check_runtime()
    if dry_run:
        _announce(settings, plan, sources)
        raise typer.Exit(FAILURE if refused else NOTHING_FOUND)
    told = _run(settings, plan, sources, once)
    raise typer.Exit(FAILURE if refused else FOUND if told and once else NOTHING_FOUND)


def _run(settings: Settings, plan: Plan, sources: Sequence[Input], once: bool) -> int:
    """Run the job, and the notifier beside it; return how many incidents a run that ends has told."""
    receivers = open_receivers(settings.receivers, _show)
    store, began = Store.open(settings.store), time.perf_counter()
    notifier = build(store, settings, plan, receivers, _say, once)
    files = Renewing(_rule_paths(settings), plan, lambda: _plan(settings), _say)
    job = Job(
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
    )
    plan_file(plan, settings.checkpoint)  # it cannot be written to? That is known before Spark is up
    with _stopping(job.stop):
        spark = start(Resources(settings.cores, settings.partitions, settings.heap, log_of(settings.checkpoint)))
        _say(f"Spark is up after {time.perf_counter() - began:.1f} s; its messages go to {log_of(settings.checkpoint)}")
        try:
            with nullcontext() if once else running(notifier, _say):
                run_job(job, spark)
        finally:
            stop(spark)
    told = drain(notifier, _say) if once else 0
    counted = f"{told} told, " if once else ""
    _say(f"{counted}{time.perf_counter() - began:.1f} s in all; incidents are kept in {settings.store}")
    store.close()
    return told


def _plan(settings: Settings) -> Plan:
    """Return the rules of the configuration. Raises RulesError."""
    plan = with_layouts(load_cached(_rule_paths(settings), overrides=settings.overrides))
    return replace(plan, context={**plan.context, **settings.context}, redaction=settings.redaction)


def _rule_paths(settings: Settings) -> list[Path]:
    return [path or builtin_rules() for path in settings.rules]


def _renewed(files: Renewing, notifier: Notifier) -> Plan | None:
    """Return the rules that take over, and tell the notifier of them; None while none do."""
    plan = files.renewed()
    if plan is not None:
        notifier.rules_changed(explained(plan))
    return plan


def _check(sources: Sequence[Input], once: bool, dry_run: bool) -> list[SourceError]:
    """Tell what cannot be read and return it. Raises SourceMissing when there is nothing at all to read, and never will be."""
    errors = unreadable(sources, once, dry_run)
    for error in errors:
        _say(str(error))
    return errors


def _announce(settings: Settings, plan: Plan, sources: Sequence[Input]) -> None:
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
    if notification.reason not in (Reason.OPENED, Reason.BACKFILL):
        _say(f"{notification.incident.id} {notification.reason.value.replace('_', ' ')}: {notification.news}")
    show(lambda width: render_incident(notification.incident, width, notification.links).append("\n"))
    sys.stdout.flush()


def _say(sentence: str) -> None:
    print(f"tocsin: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C set `stop`: the batch at work is finished or taken back, nothing is half done."""
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
