"""Watch the logs named in tocsin.yml: the Spark job, the incident store and the notifications."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from engine.cli.checking.configuration import check_configuration
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.config_reloading import RunConfiguration
from engine.cli.desk import listening_to_people
from engine.cli.exits import BY_SIGNAL, FAILURE, FOUND, NOTHING_FOUND
from engine.cli.inputs import SourceInput, open_input, surroundings, unreadable
from engine.cli.live_configuration import LiveConfiguration, LiveReceivers
from engine.cli.monitoring import Monitoring
from engine.cli.notifying import build, drain, running_notifier, show_notification
from engine.cli.output import count
from engine.cli.own_log import IdleNotice, LogFormat, LogFormatOption, LogLevel, say, saying
from engine.cli.receiving import open_receivers
from engine.cli.resuming import ConfiguredSource, resumed
from engine.cli.rulebook import configured_plan
from engine.cli.signals import Signals, handle_signals
from engine.cli.spark_start import SparkStart
from engine.config import Settings
from engine.deliver import NotifierStandby
from engine.errors import RuntimeMissing, SourceError, StoreAway, StoreError, StoreLost
from engine.model.notifications import Notification
from engine.model.rules import Plan
from engine.rights import keep_private, narrow
from engine.spark.fence import Fence, refuse_lost_store
from engine.spark.job import BatchReport, Job, fence_of, plan_file
from engine.spark.job import run as run_job
from engine.spark.session import check_runtime
from engine.store import Store
from engine.store.file import files_of
from engine.store.outage import until_back

app = typer.Typer()
_say, _warn = saying("run"), saying("run", LogLevel.WARNING)

MasterOption = Annotated[
    str | None, typer.Option("--master", help="The master of a Spark cluster, instead of that of the configuration.")
]
BUSY_S = 5.0  # how long an attempt to write waits for another process; it is repeated, and reported after a while

HELP = """\
Watch the logs that a configuration names and send one notification for each incident, and another only when its status, cause
or severity changes, or after hours in which it stays open. `route` and `receivers` set who is notified and after which waits
(docs/notifications.md); with --once the waits count as elapsed. Needs Java 17 or newer. Offsets are stored in a checkpoint next
to the incident store, so a restart continues where the run ended. Changed rule files and a changed configuration are taken up
while it runs; as long as they have errors, it reports these and continues with those before, and it says which keys need a
restart. SIGHUP reads them at once, SIGQUIT shows what every thread is doing, SIGTERM and Ctrl-C end the run (a second one at
once). Only one run at a time can use a store and a checkpoint.
With `web.listen` in the configuration it serves the pages too. `tocsin job`, `tocsin notify` and `tocsin serve` are its parts,
for machines of their own.

\b
Examples:
  tocsin run -c tocsin.yml
  tocsin run -c tocsin.yml --once
  tocsin run -c tocsin.yml --dry-run
  tocsin run -c tocsin.yml --master spark://spark-master:7077

\b
Exit codes: 0 nothing sent, 1 (--once) notifications sent, 2 usage or bad rules or
configuration, 3 failure, or some input could not be read. Live runs end with 0;
with --once a run that is stopped before its end has 130 (Ctrl-C) or 143.
With --dry-run they are those of tocsin config check.
"""


@app.command(help=HELP)
def run(
    config: ConfigOption = DEFAULT_CONFIG,
    once: Annotated[bool, typer.Option("--once", help="Read the present input, notify, and end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as tocsin config check.")] = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    pages: Annotated[bool, typer.Option("--pages/--no-pages", help="Serve the pages if web.listen is set.")] = True,
    master: MasterOption = None,
) -> None:
    """Run the job of `config` with notifier and pages beside it; the help text is HELP."""
    watch(config, once, dry_run, Beside(notifier=True, pages=pages), master)


class Beside(Struct, frozen=True):
    """The parts of a run beside its job: the notifier, and the pages where `web.listen` is set."""

    notifier: bool
    pages: bool


def watch(config: Path, once: bool, dry_run: bool, beside: Beside, master: str | None = None) -> None:
    """Run the job of `config` with the parts `beside` it, and exit with its code.

    Args:
        master: replaces the master of the configuration.
    """
    if dry_run:
        result = check_configuration(config, once, notify=beside.notifier)
        print("\n".join(result.lines()))
        raise typer.Exit(result.exit_code)
    configuration = RunConfiguration(config, master)
    settings = configuration.load()
    plan = configured_plan(settings)
    around = surroundings(settings)
    sources = [open_input(source, once, around) for source in settings.sources]
    resumed_sources = resumed(_configured(settings, sources), around.offsets)
    errors = _check(sources, once)
    check_runtime()
    for sentence in (*_reading(sources), *resumed_sources):
        _say(sentence)
    monitoring = Monitoring(settings, has_notifier=beside.notifier)
    with handle_signals(_say) as signals, monitoring.running(_say):
        notified = _run(configuration, settings, plan, sources, once, signals, monitoring, beside)
    if once and signals.ended_by is not None:
        raise typer.Exit(BY_SIGNAL + signals.ended_by)
    raise typer.Exit(FAILURE if errors else FOUND if notified and once else NOTHING_FOUND)


def _run(
    configuration: RunConfiguration,
    settings: Settings,
    plan: Plan,
    sources: Sequence[SourceInput],
    once: bool,
    signals: Signals,
    monitoring: Monitoring,
    beside: Beside,
) -> int:
    """Run the job with the parts `beside` it; return how many notifications a bounded run sent at its end."""
    _keep_private(settings)
    receivers = open_receivers(settings.receivers, _show) if beside.notifier else {}
    refuse_lost_store(settings.store.path, settings.checkpoint)
    started_at_s = time.perf_counter()
    try:
        store = until_back(lambda: Store.open(settings.store, BUSY_S), monitoring.waiting(signals.stop), _warn)
    except StoreAway:
        if signals.stop.is_set():
            return 0
        raise
    try:
        monitoring.opened(store)
        with (
            closing(SparkStart(settings, signals.stop, started_at_s, _say)) as spark,
            fence_of(store, settings.checkpoint, _warn, monitoring.waiting(signals.stop), spark.checkpoint()) as fence,
        ):
            monitoring.job_started()
            with suppress(StoreAway):  # it is printed in any case
                fence.store.put_input_notes(_reading(sources))
            notifier = build(store, settings, receivers, _warn, once, monitoring) if beside.notifier else None
            job = _job(settings, plan, sources, once, signals, notifier, fence, monitoring)
            people: AbstractContextManager[None] = nullcontext()
            if not once:
                live_receivers = LiveReceivers(settings, receivers, notifier, _show)
                live = LiveConfiguration(configuration, settings, plan, live_receivers, _say, signals.reload)
                job = replace(job, renewed=live.renewed)
                if notifier is not None:
                    people = listening_to_people(settings, receivers, store, notifier.wake, _say)
            has_pages = beside.pages and settings.web.with_run and not once
            with people, _pages(settings, store) if has_pages else nullcontext():
                _watch(job, spark, notifier)
            is_draining = once and not signals.stop.is_set()
            notified = drain(notifier, signals.stop.wait, _warn) if notifier is not None and is_draining else 0
    except StoreAway:
        if not signals.stop.is_set():
            raise
        notified = 0
    except StoreLost as lost:
        raise StoreError(f"{lost}; {_save_lost_store(store)}") from None
    prefix = f"{notified} told, " if once and beside.notifier else ""
    _say(f"{prefix}{time.perf_counter() - started_at_s:.1f} s in all; incidents are kept in {settings.store}")
    store.close()
    return notified


def _pages(settings: Settings, store: Store) -> AbstractContextManager[None]:
    try:
        from engine.cli.serving import serving_pages  # noqa: PLC0415 - the package is optional
    except ImportError:
        raise RuntimeMissing("`web.listen` needs the packages of the pages: pip install 'tocsin[web]'") from None
    return serving_pages(settings, store, _say, _warn)


def _reading(sources: Sequence[SourceInput]) -> list[str]:
    """Return, for sources with several strategies, which one reads them and what it may miss."""
    return [sentence for source in sources for sentence in source.reading]


def _job(
    settings: Settings,
    plan: Plan,
    sources: Sequence[SourceInput],
    once: bool,
    signals: Signals,
    notifier: NotifierStandby | None,
    fence: Fence,
    monitoring: Monitoring,
) -> Job:
    idle = IdleNotice()
    return Job(
        sources=[spec for source in sources for spec in source.specs],
        plan=plan,
        store=fence.store,
        checkpoint=settings.checkpoint,
        bounded=once,
        trigger_s=settings.trigger_s,
        max_lines=settings.batch_lines,
        max_bytes=settings.batch_bytes,
        audited=settings.audited,
        retention_s=settings.retention_s,
        on_batch=lambda report: _report(report, notifier, monitoring, idle),
        on_trigger=monitoring.triggered,
        on_away=monitoring.job_works,
        stop=signals.stop,
        fence=fence,
    )


def _watch(job: Job, spark: SparkStart, notifier: NotifierStandby | None) -> None:
    """Start Spark and run `job` on it to its end."""
    plan_file(job.plan, job.checkpoint)  # a folder that cannot be written to is noticed before Spark starts
    if job.stop.is_set() or (session := spark.session()) is None:
        return
    try:
        with nullcontext() if notifier is None or job.bounded else running_notifier(notifier, _warn):
            run_job(replace(job, parallelism=spark.parallelism(), files=spark.checkpoint()), session)
    finally:
        spark.close()


def _save_lost_store(store: Store) -> str:
    """Save the content of a lost store; return a sentence about the result."""
    try:
        saved = store.save()
    except StoreError as error:
        return f"what it held could not be saved ({error})"
    if saved == store.path:
        return "what it held has been put back there: start again, and the run goes on where it ended"
    return f"what it held is kept in {saved}: to go on with that, put it in its place and start again (docs/operating.md)"


def _keep_private(settings: Settings) -> None:
    """Restrict the files of this run and of earlier runs to this user; report those that were readable by others."""
    keep_private()
    path = settings.store.path
    for place in (settings.checkpoint, *(files_of(path) if path is not None else ())):
        for sentence in narrow(place).sentences:
            _say(sentence)


def _check(sources: Sequence[SourceInput], once: bool) -> list[SourceError]:
    """Report the errors of `sources` and return them. Raises SourceMissing when a bounded run has nothing to read."""
    errors = unreadable(sources, once)
    for error in errors:
        _warn(str(error))
    return errors


def _configured(settings: Settings, sources: Sequence[SourceInput]) -> list[ConfiguredSource]:
    pairs = zip(settings.sources, sources, strict=True)
    return [ConfiguredSource(spec.name, setting.start is not None) for setting, source in pairs for spec in source.specs]


def _report(report: BatchReport, notifier: NotifierStandby | None, monitoring: Monitoring, idle: IdleNotice) -> None:
    """Print the messages and counts of a batch, count it, and wake the notifier when incidents changed."""
    monitoring.batch_reported(report)
    for sentence in report.messages:
        _warn(sentence)
    if report.lines or report.incidents:
        sentence = f"batch {report.batch}: {count(report.lines, 'line')}, {count(report.incidents, 'incident')} new or changed"
        fields = {"batch": report.batch, "lines": report.lines, "incidents": report.incidents}
        say(sentence, "tocsin.run", fields=fields)
    if report.is_stored and (sentence := idle.sentence(report.lines)):
        _say(sentence)
    if report.incidents and notifier is not None:
        notifier.wake()


def _show(notification: Notification) -> None:
    show_notification(notification, _say)
