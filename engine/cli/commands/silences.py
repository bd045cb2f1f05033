"""The silences: mute notifications about something for a while."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.config import load
from engine.dsl.quantities import duration_s
from engine.errors import UsageError
from engine.model.answers import iso
from engine.model.phrases import moment
from engine.model.routes import Silence
from engine.model.visible import visible
from engine.route import MatcherError, parse_matcher
from engine.store import Outbox, Store

HELP = """\
Keep everybody from being told of the incidents that all matchers fit, until a silence ends.

\b
Examples:
  tocsin silences add -c tocsin.yml --for 2h --comment "moving brokers" component=broker
  tocsin silences list -c tocsin.yml
  tocsin silences expire -c tocsin.yml 6f1d2c3b

\b
Exit codes: 0 done, 2 usage or bad configuration, 3 failure.
"""

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.command("add")
def add_silence(
    matchers: Annotated[list[str], typer.Argument(metavar="MATCHER...", help='For example topic=~"orders.*".')],
    lasting: Annotated[str, typer.Option("--for", metavar="DURATION", help="For example 30m, 2h, 3d.")],
    comment: Annotated[str, typer.Option("--comment", help="Why.")] = "",
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Add a silence that begins now, and print its id."""
    now = datetime.now(UTC)
    try:
        parsed, ends_at = tuple(parse_matcher(text) for text in matchers), now + timedelta(seconds=duration_s(lasting))
    except MatcherError as error:
        raise UsageError(str(error)) from None
    except (ValueError, OverflowError):
        raise UsageError(f"`{lasting}` is not a duration; write for example 30m, 2h or 3d") from None
    silence = Silence(secrets.token_hex(4), parsed, now, ends_at, comment)
    with _outbox(config) as outbox:
        outbox.put_silence(silence)
    print(silence.id)


@app.command("list")
def list_silences(config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """List the silences that have not ended."""
    with _outbox(config) as outbox:
        silences = outbox.silences(datetime.now(UTC))
    if format is OutputFormat.JSON:
        print_json([_value(silence) for silence in silences])
        return
    for silence in silences:
        by = f" ({silence.by})" if silence.by else ""
        print(visible(f"{silence.id}  until {moment(silence.ends_at)}  {_matchers(silence)}  {silence.comment}{by}".rstrip()))


@app.command("expire")
def expire_silence(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")], config: ConfigOption = DEFAULT_CONFIG
) -> None:
    """End a silence now."""
    now = datetime.now(UTC)
    with _outbox(config) as outbox:
        silence = next((active for active in outbox.silences(now) if active.id == id), None)
        if silence is None:
            raise UsageError(f"there is no silence `{id}` that has not ended; see tocsin silences list")
        outbox.put_silence(replace(silence, ends_at=now))


@contextmanager
def _outbox(config: Path) -> Iterator[Outbox]:
    store = Store.open(load(config).store)
    try:
        yield store.outbox()
    finally:
        store.close()


def _matchers(silence: Silence) -> str:
    return " ".join(str(matcher) for matcher in silence.matchers)


def _value(silence: Silence) -> Mapping[str, Any]:
    times = {"starts_at": iso(silence.starts_at), "ends_at": iso(silence.ends_at)}
    matchers = [str(matcher) for matcher in silence.matchers]
    return {"id": silence.id, "matchers": matchers, **times, "comment": silence.comment, "by": silence.by}
