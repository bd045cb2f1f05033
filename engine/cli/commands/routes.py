"""The route tree: show it, and test which receivers an incident goes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import FOUND
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.config import Settings, keeps_record, load
from engine.errors import UsageError
from engine.model.phrases import lasting
from engine.model.routes import Route, Timings
from engine.route import route

HELP = """\
Show who is told of what, and when.

A route takes an incident when all its matchers hold; they see the incident's labels, and its rule, severity and component.

\b
Examples:
  tocsin routes show -c tocsin.yml
  tocsin routes test -c tocsin.yml component=connect severity=critical
  tocsin routes test -c tocsin.yml cluster=prod --format json

\b
Exit codes: 0 shown, 1 (test) a receiver would be told, 2 usage or bad configuration.
"""

AT_ONCE = Timings(0.0, 0.0, 0.0)  # of a record; it repeats nothing

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.command("show")
def show_routes(config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """Show the tree with its matchers and timings."""
    settings = load(config)
    if format is OutputFormat.JSON:
        print_json({**_value(settings.route), "records": _records(settings)})
        return
    print("\n".join([*_lines(settings.route), *(f"everything -> {_record_line(name)}" for name in _records(settings))]))


@app.command("test")
def test_routes(
    labels: Annotated[list[str] | None, typer.Argument(metavar="LABEL=VALUE...", help="What the incident has.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Print which receivers would be notified of an incident with these labels."""
    settings = load(config)
    records = _records(settings)
    targets = [target for target in route(_labels(labels or []), settings.route) if target.receiver not in records]
    if format is OutputFormat.JSON:
        rows = [{"receiver": target.receiver, **_seconds(target.timings), "record": False} for target in targets]
        print_json([*rows, *({"receiver": name, **_seconds(AT_ONCE), "record": True} for name in records)])
    else:
        lines = [f"{target.receiver}  ({_timings(target.timings)})" for target in targets]
        print("\n".join([*lines, *map(_record_line, records)]))
    raise typer.Exit(FOUND)


def _records(settings: Settings) -> list[str]:
    """Return the names of the receivers that keep a record: routes do not matter to them."""
    return [receiver.name for receiver in settings.receivers if keeps_record(receiver)]


def _record_line(name: str) -> str:
    return f"{name}  (a record: at once, and every change)"


def _labels(pairs: list[str]) -> Mapping[str, str]:
    parts = [pair.partition("=") for pair in pairs]
    for name, sign, _ in parts:
        if not name or not sign:
            raise UsageError(f"`{name}` is no label; write for example component=connect")
    return {name: value for name, _, value in parts}


def _lines(node: Route, depth: int = 0) -> Iterator[str]:
    condition = " ".join(str(matcher) for matcher in node.matchers) or "everything" + (" else" if node.routes else "")
    suffix = ", then goes on" if node.goes_on else ""
    yield f"{'  ' * depth}{condition} -> {node.receiver}  ({_timings(node.timings)}){suffix}"
    for branch in node.routes:
        yield from _lines(branch, depth + 1)


def _value(node: Route) -> Mapping[str, Any]:
    fields = {"receiver": node.receiver, "matchers": [str(m) for m in node.matchers], "continue": node.goes_on}
    return {**fields, **_seconds(node.timings), "routes": [_value(branch) for branch in node.routes]}


def _seconds(timings: Timings) -> Mapping[str, float]:
    return {
        "group_wait_s": timings.group_wait_s,
        "group_interval_s": timings.group_interval_s,
        "repeat_interval_s": timings.repeat_interval_s,
    }


def _timings(timings: Timings) -> str:
    wait, interval, repeat = (lasting(timedelta(seconds=seconds)) for seconds in _seconds(timings).values())
    return f"after {wait}, changes every {interval}, repeated every {repeat}"
