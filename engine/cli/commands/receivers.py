"""The receivers: list them, and send one of them a test message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.exits import FAILURE
from engine.cli.output import FormatOption, OutputFormat, print_json
from engine.cli.receiving import RightsReport, open_receiver
from engine.cli.report import render_incident
from engine.cli.terminal import show
from engine.config import SlackSettings, load
from engine.deliver import delivered
from engine.errors import UsageError
from engine.language import words_of
from engine.model.incidents import Incident
from engine.model.notifications import TEST_RULE, DeliveryState, Notification, Reason
from engine.model.prose import localised
from engine.model.words import ENGLISH, worded
from engine.picture import why_no_png

HELP = """\
List who can be told, and try it: `test` sends a message that says it is a test and says how it went.

\b
Examples:
  tocsin receivers list -c tocsin.yml
  tocsin receivers test kafka-ops -c tocsin.yml

\b
Exit codes: 0 delivered, 2 usage or bad configuration, 3 not delivered.
"""

app = typer.Typer(help=HELP, no_args_is_help=True)


@app.command("list")
def list_receivers(config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """List every receiver with its type and destination. Secrets are not shown."""
    rows = [{"name": receiver.name, "type": receiver.type, "to": receiver.destination} for receiver in load(config).receivers]
    if format is OutputFormat.JSON:
        print_json(rows)
        return
    width, types = (max(len(row[column]) for row in rows) for column in ("name", "type"))
    print("\n".join(f"{row['name']:{width}}  {row['type']:{max(8, types)}}  {row['to']}".rstrip() for row in rows))


@app.command("test")
def test_receiver(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A receiver of the configuration.")],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Send a test message; print the result, and which rights a Slack app lacks."""
    settings = load(config)
    receivers = {receiver.name: receiver for receiver in settings.receivers}
    if name not in receivers:
        raise UsageError(f"there is no receiver `{name}`; known: {', '.join(receivers)}")
    receiver = open_receiver(receivers[name], _show)
    words = words_of(settings.languages.get(name, ENGLISH.language))
    receipt = delivered(receiver, localised(Notification(_test_incident(datetime.now(UTC)), Reason.TEST), words))
    print(f"{name}: {receipt.state.value.replace('_', ' ')}" + (f" ({receipt.why})" if receipt.why else ""))
    for sentence in receiver.missing_rights() if isinstance(receiver, RightsReport) else ():
        print(f"{name}: {sentence}")
    chosen = receivers[name]
    if isinstance(chosen, SlackSettings) and chosen.token is not None and (why := why_no_png()):
        print(f"{name}: there are no pictures in the threads: {why}")
    if receipt.state is not DeliveryState.DELIVERED:
        raise typer.Exit(FAILURE)


def _test_incident(now: datetime) -> Incident:
    """Return the incident of a test message; its text says that nothing is wrong."""
    return Incident(
        id=f"test-{now:%Y%m%dT%H%M%S}",
        key=("default", TEST_RULE, ()),
        revision=1,
        rule=TEST_RULE,
        title=worded("A test message of tocsin: nothing is wrong"),
        severity="info",
        status="open",
        component="any",
        labels={},
        first_seen=now,
        last_seen=now,
        resolved_at=None,
        count=1,
        cause=worded("Somebody asked whether this receiver works; it does."),
        impact="",
    )


def _show(notification: Notification) -> None:
    show(lambda width: render_incident(notification.incident, width).append("\n"))
