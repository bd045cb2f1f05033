"""Go through the history of a configuration: what it would have told, and what other rules would have told instead."""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer
from msgspec.structs import replace

from engine.cli.backtest_report import Backtest, html_of, json_of, junit_of, text_of
from engine.cli.backtesting import apart, history_of, incidents_of
from engine.cli.commands.run import MasterOption
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import BY_SIGNAL, FAILURE, FOUND, NOTHING_FOUND
from engine.cli.inputs import checks
from engine.cli.output import print_json
from engine.cli.rulebook import BUILTIN, configured_plan
from engine.cli.signals import handle_signals
from engine.cli.spark_start import SparkStart
from engine.cli.windows import TimeWindow, window_of
from engine.comparing import differences, messages, reported
from engine.config import Settings, load
from engine.errors import UsageError
from engine.model.incidents import Incident
from engine.model.rules import Plan
from engine.spark.session import check_runtime
from engine.spark.spark_settings import is_local

app = typer.Typer()

OLD, NEW = "configured", "new"
UTC_ZONE = ZoneInfo("UTC")

HELP = """\
Run the job of a configuration over the history that its sources have (files, topics, indices), apart from the real store and
checkpoint, and print the incidents and how often each receiver would have been told. With --rules it is run by these rules too,
and the report is what differs: incidents that appear, vanish, or have another root, severity or count. Nobody is notified, and
nothing is written but a folder that goes with the command (--keep DIR: it stays there).

\b
Examples:
  tocsin backtest -c tocsin.yml --from 7d
  tocsin backtest -c tocsin.yml --from 2026-10-01 --to 2026-10-08 --rules builtin --rules my-rules/
  tocsin backtest -c tocsin.yml --from 7d --rules my-rules/ --html difference.html --format junit > difference.xml

\b
Exit codes: 0 nothing differs, or without --rules no incident; 1 something differs, or there
are incidents; 2 usage or bad rules or configuration; 3 failure, or some input could not be
read; 130 or 143 stopped by Ctrl-C or SIGTERM.
"""


class BacktestFormat(str, Enum):
    """The format that the result is printed in."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


@app.command(help=HELP)
def backtest(
    config: ConfigOption = DEFAULT_CONFIG,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Where history begins: a time, or back from now (7d).")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Incidents that opened from here on are left out.")] = "",
    rules: Annotated[
        list[Path] | None, typer.Option("--rules", metavar="DIR", help="Other rules; `builtin` is the shipped ones.")
    ] = None,
    format: Annotated[BacktestFormat, typer.Option("--format", help="What is printed.")] = BacktestFormat.TEXT,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the incidents as a page, too.")] = None,
    keep: Annotated[Path | None, typer.Option("--keep", metavar="DIR", help="Keep the stores and checkpoints there.")] = None,
    master: MasterOption = None,
) -> None:
    """Go through the history of `config`; the help text is HELP."""
    settings = load(config, checks())
    settings = settings if master is None else replace(settings, master=master)
    now = datetime.now(UTC)
    window = window_of(since, until, UTC_ZONE, now, ("--from", "--to"))
    window = replace(window, until=window.until or now)  # sources may grow between the two runs
    plans = [(OLD, configured_plan(settings)), *_other_plans(settings, rules)]
    _check_folder(settings, keep)
    history = history_of(settings, window.since, _say)
    check_runtime()
    with handle_signals(_say) as signals, tempfile.TemporaryDirectory(prefix="tocsin-backtest-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        own = apart(settings, folder.resolve(), OLD)
        with closing(SparkStart(own, signals.stop, time.perf_counter(), _say)) as spark:
            results = incidents_of(history, own, plans, spark, signals.stop, _say)
    if len(results) < len(plans):
        raise typer.Exit(BY_SIGNAL + (signals.ended_by or 0))
    result = _result(results, settings, window)
    if html is not None:
        html.write_text(html_of(result, datetime.now(UTC)), encoding="utf-8")
    _print(result, format)
    is_found = bool(result.differences if result.after is not None else result.before)
    raise typer.Exit(FAILURE if history.errors else FOUND if is_found else NOTHING_FOUND)


def _check_folder(settings: Settings, keep: Path | None) -> None:
    """Raise UsageError when the results cannot be kept in `keep`, or executors would not reach a temporary folder."""
    if keep is None:
        if settings.master is not None and not is_local(settings.master):
            raise UsageError("on a cluster --keep DIR is needed: a folder that all executors reach, for state and checkpoints")
    elif any((keep / f"{name}{suffix}").exists() for name in (OLD, NEW) for suffix in (".db", ".checkpoint")):
        raise UsageError(f"{keep} holds an earlier backtest, which this one would go on with: remove it, or name another")


def _other_plans(settings: Settings, rules: list[Path] | None) -> list[tuple[str, Plan]]:
    if not rules:
        return []
    paths = tuple(None if str(path) == BUILTIN else path for path in rules)
    return [(NEW, configured_plan(replace(settings, rules=paths)))]


def _result(results: list[list[Incident]], settings: Settings, window: TimeWindow) -> Backtest:
    sides = [reported(incidents, window.since, window.until) for incidents in results]
    told = [messages(side, settings.route) for side in sides]
    if len(sides) == 1:
        return Backtest(sides[0], told[0])
    return Backtest(sides[0], told[0], sides[1], told[1], differences(sides[0], sides[1], window.until))


def _print(result: Backtest, format: BacktestFormat) -> None:
    if format is BacktestFormat.JSON:
        print_json(json_of(result))
    elif format is BacktestFormat.JUNIT:
        print(junit_of(result))
    else:
        print("\n".join(text_of(result)))


def _say(sentence: str) -> None:
    print(f"tocsin: {sentence}", file=sys.stderr, flush=True)
