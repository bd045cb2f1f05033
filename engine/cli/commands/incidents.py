"""The incidents of the store: list and show them, and act on them as on the pages and in Slack."""

from __future__ import annotations

import getpass
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from engine.acting import sentence
from engine.cli.config_option import DEFAULT_CONFIG, ConfigOption
from engine.cli.output import FormatOption, OutputFormat, count, print_json
from engine.cli.report import entity, render_incident, wrapped
from engine.cli.terminal import show
from engine.config import load
from engine.dsl.quantities import duration_s
from engine.errors import UsageError
from engine.model.acts import Act, ActKind, ActOutcome, SilenceScope
from engine.model.answers import incident_value
from engine.model.considered import CONSIDERED_WORDS, ConsideredRule
from engine.model.incidents import Incident
from engine.model.links import LinkTargets
from engine.model.past import NEAR_WORDS, Past, PastIncident
from engine.model.phrases import lasting, moment
from engine.model.visible import visible
from engine.store import Store
from engine.web.answers import history_value
from engine.web.history import History, history_of
from engine.web.listing import lasted, parse_query, state
from engine.web.timeline import Change

HELP = """\
List the incidents of the store, show one with its timeline, and say what is done about it. ID is an incident's id or its
beginning, with or without inc-.

\b
Examples:
  tocsin incidents list -c tocsin.yml --status open timeout
  tocsin incidents show -c tocsin.yml 1a8a
  tocsin incidents ack -c tocsin.yml 1a8a
  tocsin incidents silence -c tocsin.yml 1a8a --for 2h --of rule --why "moving brokers"
  tocsin incidents resolve -c tocsin.yml 1a8a --why "the disk was full"

\b
Exit codes: 0 done, or it was so already; 2 usage, bad configuration, or it cannot be done; 3 failure.
"""
VIA = "command"
_STATE_COLUMN, _SEVERITY_COLUMN = 12, 8  # widths

app = typer.Typer(help=HELP, no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of an incident, or its beginning.")]
WhyOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why.")]
ByOption = Annotated[str, typer.Option("--by", metavar="NAME", help="Your name; by default that of the user of this machine.")]


@app.command("list")
def list_incidents(  # noqa: PLR0913, PLR0917  (options)
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD...]", help="Words that must all occur.")] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    status: Annotated[str, typer.Option(help="open, acknowledged, resolved, pending, merged or retracted.")] = "",
    severity: Annotated[str, typer.Option(help="critical, high, medium, low or info.")] = "",
    component: Annotated[str, typer.Option(help="Such as broker.")] = "",
    cluster: Annotated[str, typer.Option(help="Such as prod.")] = "",
    rule: Annotated[str, typer.Option(help="The id of a rule.")] = "",
    receiver: Annotated[str, typer.Option(help="Who was told, or is to be.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, or NAME for any value.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """List incidents: open ones first, severe ones first. Without --status those that are open, acknowledged or resolved."""
    parts = {"q": " ".join(words or ()), "status": status, "severity": severity, "component": component}
    parts |= {"cluster": cluster, "rule": rule, "receiver": receiver}
    search = parse_query([*parts.items(), *(("label", each) for each in label or ())]).search()
    with _store(config) as (store, _):
        incidents, counts = store.search(search, limit)
    if format is OutputFormat.JSON:
        print_json([incident_value(incident) for incident in incidents])
        return
    for incident in incidents:
        print(_row(incident))
    if (rest := sum(counts[each] for each in search.states) - len(incidents)) > 0:
        print(f"and {count(rest, 'more', 'more')}; --limit shows them")


@app.command("show")
def show_incident(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, format: FormatOption = OutputFormat.TEXT) -> None:
    """Show one incident: cause, fix, proof, who has it, its timeline, and what people wrote about earlier ones."""
    with _store(config) as (store, links):
        history = history_of(store, store.acts().id_of(id), links, datetime.now(UTC))
    if history is None:  # removed since
        raise UsageError(f"there is no incident `{id}`; see tocsin incidents list")
    if format is OutputFormat.JSON:
        print_json(history_value(history))
        return
    shown = history
    show(
        lambda width: (
            render_incident(shown.incident, width, shown.links)
            .append(_timeline(shown, width))
            .append(_considered(shown, width))
            .append(_past(shown.past, width))
        )
    )


@app.command("ack")
def acknowledge(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, why: WhyOption = "", by: ByOption = "") -> None:
    """Acknowledge it: you have it, and it is not repeated."""
    _act(config, id, ActKind.ACKNOWLEDGE, by, text=why)


@app.command("resolve")
def resolve(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, why: WhyOption = "", by: ByOption = "") -> None:
    """Resolve it. Newer evidence opens it again."""
    _act(config, id, ActKind.RESOLVE, by, text=why)


@app.command("reopen")
def reopen(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, why: WhyOption = "", by: ByOption = "") -> None:
    """Open it again, or take back an acknowledgement."""
    _act(config, id, ActKind.REOPEN, by, text=why)


@app.command("note")
def note(
    id: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The note.")],
    config: ConfigOption = DEFAULT_CONFIG,
    by: ByOption = "",
) -> None:
    """Add a note to its timeline."""
    _act(config, id, ActKind.NOTE, by, text=text)


@app.command("assign")
def assign(
    id: IdArgument,
    assignee: Annotated[str, typer.Argument(metavar="[NAME]", help="Who has it from now on; without a name: nobody.")] = "",
    config: ConfigOption = DEFAULT_CONFIG,
    why: WhyOption = "",
    by: ByOption = "",
) -> None:
    """Assign it to somebody."""
    _act(config, id, ActKind.ASSIGN, by, text=why, assignee=assignee.strip())


@app.command("silence")
def silence(
    id: IdArgument,
    span: Annotated[str, typer.Option("--for", metavar="DURATION", help="For example 30m, 2h, 3d.")],
    of: Annotated[SilenceScope, typer.Option("--of", help="The incident, its rule in its cluster, or its entity.")] = (
        SilenceScope.INCIDENT
    ),
    config: ConfigOption = DEFAULT_CONFIG,
    why: WhyOption = "",
    by: ByOption = "",
) -> None:
    """Keep everybody from being told of it for a while; `tocsin silences expire` ends that."""
    try:
        until = datetime.now(UTC) + timedelta(seconds=duration_s(span))
    except (ValueError, OverflowError):
        raise UsageError(f"`{span}` is not a duration; write for example 30m, 2h or 3d") from None
    _act(config, id, ActKind.SILENCE, by, text=why, until=until, scope=of)


@app.command("useful")
def useful(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, why: WhyOption = "", by: ByOption = "") -> None:
    """Say that it helped to be told of it; `tocsin rules stats` counts that."""
    _act(config, id, ActKind.USEFUL, by, text=why)


@app.command("not-useful")
def not_useful(id: IdArgument, config: ConfigOption = DEFAULT_CONFIG, why: WhyOption = "", by: ByOption = "") -> None:
    """Say that it did not help to be told of it, and why; `tocsin rules stats` counts that."""
    _act(config, id, ActKind.NOT_USEFUL, by, text=why)


def _act(config: Path, id: str, kind: ActKind, by: str, **details: Any) -> None:
    """Record an act and print what became of it. Raises UsageError when it cannot be done."""
    with _store(config) as (store, _):
        acts = store.acts()
        now = datetime.now(UTC)
        act = Act(secrets.token_hex(16), acts.id_of(id), kind, by or getpass.getuser(), VIA, now, **details)
        recorded = acts.record(act)
    decision, incident = recorded.decision, recorded.incident
    if decision.outcome is ActOutcome.REFUSED:
        raise UsageError(f"{incident.id}: {decision.sentence}")
    remark = f"; the silence is {recorded.act.silence}" if recorded.act is not None and recorded.act.silence else ""
    print(visible(f"{incident.id}: {decision.sentence}{remark}"))


@contextmanager
def _store(config: Path) -> Iterator[tuple[Store, LinkTargets]]:
    settings = load(config)
    store = Store.open(settings.store)
    try:
        yield store, settings.links
    finally:
        store.close()


def _row(incident: Incident) -> str:
    since = moment(incident.first_seen) if incident.first_seen else "no time in its lines"
    owner = f" ({incident.owner})" if incident.owner else ""
    columns = f"{incident.id}  {incident.severity:{_SEVERITY_COLUMN}}  {state(incident):{_STATE_COLUMN}}  {since:23}"
    return visible(f"{columns}  {incident.title}  {entity(incident.labels)}{owner}".rstrip())


def _timeline(history: History, width: int) -> Text:
    """Return who has the incident and its timeline, as lines."""
    page = Text()
    if history.incident.owner:
        page.append(f"{'Has it':<10}", "dim").append(f"{visible(history.incident.owner)}\n")
    _entries(page, "History", [_change(change) for change in history.changes], width)
    return page


def _considered(history: History, width: int) -> Text:
    """Return the rules that were considered and are no part of the incident, as lines."""
    page = Text()
    _entries(page, "Not this", [_considered_line(considered) for considered in history.considered], width)
    return page


def _considered_line(considered: ConsideredRule) -> str:
    name = f"{considered.incident} {considered.title} [{considered.rule}]" if considered.incident else f"[{considered.rule}]"
    return f"{considered.count:,} x {name} {entity(considered.labels)}: {CONSIDERED_WORDS[considered.reason]}"


def _past(past: Past, width: int) -> Text:
    """Return the earlier incidents of the rule and what people wrote about them, as lines."""
    page, rest = Text(), past.total - len(past.incidents)
    entries = [line for earlier in past.incidents for line in _earlier(earlier)]
    _entries(page, "Before", [*entries, *([f"and {count(rest, 'more', 'more')} of this rule"] if rest else [])], width)
    return page


def _change(change: Change) -> str:
    at = moment(change.at) if change.at else "no time"
    via = f" ({change.via})" if change.via else ""
    return f"{at}  {change.by}{via}: {change.sentence}"


def _earlier(past: PastIncident) -> Iterator[str]:
    incident = past.incident
    since = moment(incident.first_seen) if incident.first_seen else "no time in its lines"
    how_long = f", lasted {lasting(span)}" if (span := lasted(incident)) else ""
    yield f"{incident.id} ({NEAR_WORDS[past.near]}) {since}{how_long}, {past.ending} {entity(incident.labels)}".rstrip()
    yield from (f"  {act.by}: {sentence(act)}" for act in past.remarks)


def _entries(page: Text, name: str, entries: Sequence[str], width: int) -> None:
    """Append entries to a page, `name` before the first one; the later lines of an entry are indented."""
    for number, entry in enumerate(entries):
        page.append(f"{name if number == 0 else '':<10}", "dim")
        indent = " " * (len(entry) - len(entry.lstrip()))
        first, *rest = wrapped(entry, width - 12) or [""]
        page.append(f"{indent}{first}\n")
        for line in rest:
            page.append(f"{'':<10}{indent}  {line}\n")
