"""An incident as named passages of text and code: what receivers without a form of their own show. Pure.

All text is safe to display: what a reader cannot see is visible, and a passage has no line ends except in its code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from engine.model.incidents import Evidence, Incident, RenderedStep
from engine.model.notifications import DIGEST_HEADINGS, Notification
from engine.model.phrases import lasting, moment, named
from engine.model.proof import distinct_events
from engine.model.visible import visible

MOST_PROOF, MOST_EVENT, MOST_MEMBERS = 5, 2_000, 40


class Passage(Struct, frozen=True):
    """A part of an outline: `name` is its heading, `code` stands below `text`, line by line. Text or code may be empty."""

    name: str
    text: str = ""
    code: str = ""


def headline(incident: Incident) -> str:
    """Return the state and the title, as `CRITICAL: Broker 1 went silent` or `Resolved: Broker 1 went silent`."""
    state = incident.severity.upper() if incident.status == "open" else incident.status.capitalize()
    return f"{state}: {visible(incident.title)}"


def outline(notification: Notification) -> tuple[Passage, ...]:
    """Return the passages of a notification in the order in which a reader needs them; parts without content are left out.

    Evidence is at most MOST_PROOF distinct events of MOST_EVENT characters each, a list of symptoms at most MOST_MEMBERS lines.
    """
    incident = notification.incident
    passages = (
        Passage("Changed", visible(notification.news)),
        Passage("When", _when(incident)),
        Passage("Where", visible(named(incident.labels))),
        Passage("Cause", visible(incident.cause)),
        Passage("Impact", visible(incident.impact)),
        *(Passage(f"Fix {number}", *_step(step)) for number, step in enumerate(incident.fix, 1)),
        Passage("Verify", code=_code(incident.verify)),
        *_proof(incident),
        Passage(DIGEST_HEADINGS.get(incident.rule, "Explains"), code=_symptoms(incident)),
        Passage("Or", visible(", ".join(incident.also_possible))),
        *(Passage("Check", visible(check)) for check in incident.next_checks),
        *(Passage("See", visible(reference)) for reference in incident.references),
    )
    return tuple(passage for passage in passages if passage.text or passage.code)


def fitting(passages: Iterable[Passage], budget: int) -> tuple[Passage, ...]:
    """Return the first passages that have at most `budget` characters together, and one that counts those left out, if any."""
    chosen: list[Passage] = []
    everything = tuple(passages)
    for passage in everything:
        budget -= len(passage.name) + len(passage.text) + len(passage.code)
        if budget < 0:
            more = len(everything) - len(chosen)
            return (*chosen, Passage("More", f"{more:,} {'part' if more == 1 else 'parts'} did not fit in here"))
        chosen.append(passage)
    return everything


def plain(passages: Iterable[Passage]) -> str:
    """Return passages as plain text: code is indented by two blanks."""
    parts = []
    for passage in passages:
        code = [f"  {line}" for line in passage.code.split("\n")] if passage.code else []
        parts.append("\n".join([f"{passage.name}: {passage.text}".rstrip(" "), *code]))
    return "\n\n".join(parts)


def _when(incident: Incident) -> str:
    if incident.first_seen is None:
        return ""
    parts = [f"since {moment(incident.first_seen)}"]
    if incident.resolved_at is not None:
        parts.append(f"until {moment(incident.resolved_at)} ({lasting(incident.resolved_at - incident.first_seen)})")
    elif incident.last_seen is not None and incident.last_seen > incident.first_seen:
        parts.append(f"last seen {moment(incident.last_seen)}")
    if incident.count > 1:
        parts.append(f"{incident.count:,} times")
    if incident.why:
        parts.append(visible(incident.why))
    return ", ".join(parts)


def _step(step: RenderedStep) -> tuple[str, str]:
    remark = f" ({visible(step.remark)})" if step.remark else ""
    files = [f"{path}:\n{content}" for path, content in step.file.items()]
    codes = [code for code in ("\n".join(step.assignments), *files, step.run) if code.strip()]
    return f"{visible(step.do)}{remark}", _code("\n".join(codes))


def _proof(incident: Incident) -> Iterator[Passage]:
    events = [event for event, is_new in distinct_events(incident.evidence) if is_new]
    for event in events[:MOST_PROOF]:
        yield Passage("Proof", visible(event.place), _event(event))
    if more := len(incident.evidence) - min(len(events), MOST_PROOF):
        yield Passage("Proof", f"and {more:,} more {'line' if more == 1 else 'lines'} on the incident's page")


def _event(event: Evidence) -> str:
    lines = _code(event.text)
    return lines if len(lines) <= MOST_EVENT else f"{lines[: MOST_EVENT - 1]}…"


def _symptoms(incident: Incident) -> str:
    lines = [f"{x.count:,} x {x.title or x.rule} {named(x.labels)}".strip() for x in incident.symptoms]
    more = [f"and {len(lines) - MOST_MEMBERS:,} more"] if len(lines) > MOST_MEMBERS else []
    return _code("\n".join([*lines[:MOST_MEMBERS], *more]))


def _code(text: str) -> str:
    """Return `text` with what cannot be seen made visible, except its line ends. A command is never cut."""
    return "\n".join(visible(line) for line in text.rstrip().split("\n"))
