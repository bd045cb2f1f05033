"""Write a first tocsin.yml from flags or a few questions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.checking.configuration import check_configuration
from engine.cli.first_configuration import LOGS_HELP, SCHEMA_FILE, FirstAnswers, first_configuration
from engine.config.json_schema import config_schema
from engine.errors import UsageError

HELP = """\
Write a commented tocsin.yml, and beside it the JSON Schema with which editors complete and check it. What is not given is asked
for on a terminal. Nothing is replaced without --force.

\b
Examples:
  tocsin init
  tocsin init --logs /var/log/kafka --cluster prod --brokers 1,2,3
  tocsin init --logs docker:shop --slack '#kafka-ops'
  tocsin init --logs kafka:kafka-1:9092/logs.kafka --bootstrap kafka-1:9092

\b
Where the logs are:
  PATH or pattern, docker[:PROJECT], kubernetes[:NAMESPACE], journald[:UNIT],
  kafka:HOST:PORT/TOPIC, https://HOST:9200/INDICES (Elasticsearch)

\b
Exit codes: 0 written, 2 usage, or the file is there already.
"""

app = typer.Typer()


@app.command("init", help=HELP)
def run(
    logs: Annotated[
        list[str] | None, typer.Option("--logs", metavar="PLACE", help="Where the logs are; may be repeated.")
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", metavar="NAME", help="The name of the cluster.")] = None,
    bootstrap: Annotated[str, typer.Option("--bootstrap", metavar="HOST:PORT", help="Its bootstrap servers.")] = "",
    brokers: Annotated[str, typer.Option("--brokers", metavar="IDS", help="Its brokers, such as 1,2,3.")] = "",
    timezone: Annotated[str, typer.Option("--timezone", metavar="ZONE", help="The zone of stamps without one.")] = "",
    slack: Annotated[str | None, typer.Option("--slack", metavar="CHANNEL", help="The Slack channel.")] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")] = Path("tocsin.yml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the files if they are there.")] = False,
) -> None:
    """Write the configuration; the help text is HELP."""
    if out.exists() and not force:
        raise UsageError(f"{out} is there already; name another with --out, or replace it with --force")
    schema_file, schema = out.with_name(SCHEMA_FILE), json.dumps(config_schema(), ensure_ascii=False, indent=2) + "\n"
    if not force and _differs(schema_file, schema):
        raise UsageError(f"{schema_file} is there already; name another folder with --out, or replace it with --force")
    if not logs and not sys.stdin.isatty():
        raise UsageError(f"where are the logs? Name them with --logs: {LOGS_HELP}")
    if not logs:
        logs = [_asked(f"Where are the logs?\n  ({LOGS_HELP})", "/var/log/kafka")]
        cluster = _asked("The name of the cluster", "prod") if cluster is None else cluster
        slack = _asked("The Slack channel (empty: the terminal)", "") if slack is None else slack
    answers = FirstAnswers(tuple(logs), cluster or "", bootstrap, _ids(brokers), timezone, slack or "")
    _write(out, first_configuration(answers))
    _write(schema_file, schema)
    check = check_configuration(out, offline=True)
    print(f"wrote {out}, and {schema_file} for editors")
    if check.exit_code:
        print("\n".join(check.lines()))
    print(f"next: tocsin config check -c {out}")
    raise typer.Exit(check.exit_code)


def _differs(path: Path, text: str) -> bool:
    """Return whether there is a file at `path` that does not hold `text`."""
    try:
        return path.read_bytes() != text.encode()
    except FileNotFoundError:
        return False
    except OSError:  # there is something that cannot be read
        return True


def _asked(question: str, default: str) -> str:
    return str(typer.prompt(question, default=default, show_default=bool(default))).strip()


def _ids(brokers: str) -> tuple[int, ...]:
    parts = [part.strip() for part in brokers.split(",") if part.strip()]
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise UsageError(f"--brokers takes broker ids such as 1,2,3, not: {brokers}")
    return tuple(int(part) for part in parts)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
