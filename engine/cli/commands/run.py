"""Watch the logs named in tocsin.yml: the Spark job, the incident store, and who is told."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from connectors.files import FilesSource, LabelError, check_label
from engine.cli.exits import FAILURE, FOUND, NOTHING_FOUND
from engine.cli.notifying import build, drain, running
from engine.cli.receiving import open_receivers
from engine.cli.report import render_incident
from engine.cli.terminal import show
from engine.config import Settings, SourceSettings, load
from engine.dsl import builtin_rules, load_cached
from engine.dsl.quantities import duration_s
from engine.errors import SourceError, SourceMissing
from engine.model.notifications import Notification, Reason
from engine.model.rules import Plan
from engine.spark.job import BatchReport, Job, log_of
from engine.spark.job import run as run_job
from engine.spark.session import Resources, check_runtime, start
from engine.spark.sources import SourceSpec
from engine.store import Store

app = typer.Typer()

OPENERS: Mapping[str, str] = {"files": "connectors.files:open_source"}
LIVE_START = "1h"  # what a live run reads of logs that were there before it, unless the source says otherwise

HELP = """\
Watch the logs that a configuration names and tell each incident once, and again only when its status, cause or severity
changes, or after hours in which it stays open. Who is told, and after what waits, is said by `route` and `receivers`
(docs/notifications.md); with --once the waits count as elapsed. Needs Java 17 or newer. What was read is remembered next to the
incident store, so a restart goes on where it ended.

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
    settings = load(config, _label_problem)
    plan = _plan(settings)
    sources = [_files(source, once) for source in settings.sources]
    refused = _check(sources, once)
    check_runtime()
    if dry_run:
        _announce(settings, plan, sources)
        raise typer.Exit(FAILURE if refused else NOTHING_FOUND)
    told = _run(settings, plan, sources, once)
    raise typer.Exit(FAILURE if refused else FOUND if told and once else NOTHING_FOUND)


def _run(settings: Settings, plan: Plan, sources: Sequence[FilesSource], once: bool) -> int:
    """Run the job, and the notifier beside it; return how many incidents a run that ends has told."""
    receivers = open_receivers(settings.receivers, _show)
    store, began = Store.open(settings.store), time.perf_counter()
    notifier = build(store, settings, plan, receivers, _say, once)
    job = Job(
        sources=_specs(settings.sources, sources),
        plan=plan,
        store=store,
        checkpoint=settings.checkpoint,
        bounded=once,
        trigger_s=settings.trigger_s,
        max_lines=settings.batch_lines,
        parallelism=1,
        on_batch=_report,
    )
    with _stopping(job.stop):
        spark = start(Resources(settings.cores, settings.partitions, settings.heap, log_of(settings.checkpoint)))
        _say(f"Spark is up after {time.perf_counter() - began:.1f} s; its messages go to {log_of(settings.checkpoint)}")
        try:
            with nullcontext() if once else running(notifier, _say):
                run_job(job, spark)
        finally:
            spark.stop()
    told = drain(notifier, _say) if once else 0
    counted = f"{told} told, " if once else ""
    _say(f"{counted}{time.perf_counter() - began:.1f} s in all; incidents are kept in {settings.store}")
    store.close()
    return told


def _plan(settings: Settings) -> Plan:
    """Return the rules of the configuration. Raises RulesError."""
    plan = load_cached([path or builtin_rules() for path in settings.rules], overrides=settings.overrides)
    return replace(plan, context={**plan.context, **settings.context})


def _files(source: SourceSettings, once: bool) -> FilesSource:
    labels = {**source.labels, "cluster": source.scope}
    return FilesSource(source.paths, labels, _start(source.start or ("earliest" if once else LIVE_START)), final=once)


def _start(start: str) -> str:
    """Return `start` with a duration back from now as the time it stands for."""
    with suppress(ValueError):
        return (datetime.now(UTC) - timedelta(seconds=duration_s(start))).isoformat()
    return start


def _specs(settings: Sequence[SourceSettings], sources: Sequence[FilesSource]) -> list[SourceSpec]:
    specs = []
    for said, source in zip(settings, sources, strict=True):
        opening = {"paths": source.paths, "labels": source.labels, "start": source.start, "final": source.final}
        name = f"{said.type} {said.scope} {' '.join(said.paths)}"
        specs.append(SourceSpec(name, OPENERS[said.type], opening, said.scope))
    return specs


def _check(sources: Sequence[FilesSource], once: bool) -> list[SourceError]:
    """Tell what cannot be read and return it; a file that is not there yet is no problem for a run that waits for it.

    Raises SourceMissing when there is nothing at all to read, and never will be.
    """
    checked = [source.check() for source in sources]
    errors = [error for found in checked for error in found.errors if once or not isinstance(error, SourceMissing)]
    for error in errors:
        _say(str(error))
    if once and not any(found.files for found in checked):
        raise SourceMissing("none of the sources has a file that can be read; nothing was run")
    return errors


def _announce(settings: Settings, plan: Plan, sources: Sequence[FilesSource]) -> None:
    """Print what a run would do."""
    print(f"rules     {len(plan.signatures)} signatures, {len(plan.correlations)} correlations")
    for said, source in zip(settings.sources, sources, strict=True):
        files = source.check().files
        print(f"source    {said.type} of cluster {said.scope}: {len(files)} file{'s' if len(files) != 1 else ''} now")
        for path in files:
            print(f"          {path}")
    print(f"store     {settings.store}")
    print(f"offsets   {settings.checkpoint}")
    print(f"receivers {', '.join(receiver.name for receiver in settings.receivers)}")


def _report(report: BatchReport) -> None:
    for loss in report.losses:
        _say(f"lines lost: {loss}")
    if report.lines or report.incidents:
        _say(f"batch {report.batch}: {_count(report.lines, 'line')}, {_count(report.incidents, 'incident')} new or changed")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _show(notification: Notification) -> None:
    if notification.reason is not Reason.OPENED:
        _say(f"{notification.incident.id} {notification.reason.value.replace('_', ' ')}: {notification.news}")
    show(lambda width: render_incident(notification.incident, width).append("\n"))
    sys.stdout.flush()


def _say(sentence: str) -> None:
    print(f"tocsin: {sentence}", file=sys.stderr, flush=True)


def _label_problem(template: str) -> str | None:
    try:
        check_label(template)
    except LabelError as error:
        return str(error)
    return None


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C set `stop`: the batch at work is finished or taken back, nothing is half done."""
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
