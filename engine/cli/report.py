"""The report of one incident on a terminal: what broke, since when, why, what to do, and the lines that prove it.

Everything is rich Text built by hand: markup and highlighting are never parsed, so log text cannot set styles, and every string
passes through `visible`. Prose wraps at `width`; a command breaks only between its words, so that it can be copied.
Print with `console.print(text, soft_wrap=True)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from rich.cells import cell_len
from rich.text import Text

from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.links import Link
from engine.model.notifications import DIGEST_HEADINGS
from engine.model.phrases import lasting, moment, named
from engine.model.placeholders import unfilled_in, why_unfilled
from engine.model.proof import distinct_events, is_stack_frame
from engine.model.visible import visible

MARGIN = 10  # columns of the left-hand words (Cause, Fix ...)
EVIDENCE_EVENTS = 3
EVIDENCE_LINES = 3
MOST_SYMPTOMS = 20
SEVERITY_STYLES: Mapping[str, str] = {
    "critical": "bold white on red",
    "high": "bold red",
    "medium": "bold yellow",
    "low": "bold cyan",
    "info": "bold",
}

_POWERSHELL = re.compile(r"[A-Z][a-z]+-[A-Z]|bin\\windows\\")
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|\S)+""")


def render_incident(incident: Incident, width: int = 80, links: Iterable[Link] = ()) -> Text:
    """Return the report of an incident, ending in a line end: title, entity, times, cause, fix, verification, evidence,
    symptoms, checks, references and `links`."""
    page = Text()
    _headline(page, incident, width)
    prose(page, "Cause", incident.cause, width)
    prose(page, "Impact", incident.impact, width)
    for number, step in enumerate(incident.fix, 1):
        add_step(page, number, step, width)
    prose(page, "Fill in", why_unfilled(unfilled_in(incident)), width)
    block(page, "Verify", _command_lines(incident.verify, width - MARGIN), "green")
    for number, event in enumerate(shown_events(incident.evidence)):
        _proof(page, "Proof" if number == 0 else "", event, width)
    heading = DIGEST_HEADINGS.get(incident.rule, "Explains")
    for number, symptom in enumerate(incident.symptoms[:MOST_SYMPTOMS]):
        prose(page, heading if number == 0 else "", _symptom(symptom), width)
    if len(incident.symptoms) > MOST_SYMPTOMS:
        prose(page, "", f"and {len(incident.symptoms) - MOST_SYMPTOMS} more; --format json lists them", width)
    prose(page, "Or", ", ".join(incident.also_possible), width)
    for number, check in enumerate(incident.next_checks):
        prose(page, "Check" if number == 0 else "", check, width)
    for number, address in enumerate(incident.references):
        block(page, "See" if number == 0 else "", [visible(address)], "dim")
    for link in links:
        block(page, "Logs" if link.kind == "kibana" else "Page", [visible(link.url)], "dim")
    return page


def shown_events(events: Iterable[Evidence]) -> list[Evidence]:
    """Return the first EVIDENCE_EVENTS events without those that differ from an earlier one in numbers only."""
    return [event for event, is_new in distinct_events(events) if is_new][:EVIDENCE_EVENTS]


def entity(labels: Mapping[str, str]) -> str:
    """Return labels as `broker=1 topic=a`, without a default cluster (see phrases.named)."""
    return visible(named(labels))


def wrapped(text: str, width: int) -> list[str]:
    """Return `text` as lines of at most `width` columns, broken at blanks; a longer word stays whole on its own line."""
    lines: list[str] = []
    for word in visible(text).split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _headline(page: Text, incident: Incident, width: int) -> None:
    label = f" {incident.severity.upper()} "
    indent = cell_len(label) + 1
    first, *rest = wrapped(incident.title, width - indent) or [""]
    page.append(label, SEVERITY_STYLES.get(incident.severity, "bold")).append(f" {first}\n", "bold")
    for line in rest:
        page.append(f"{' ' * indent}{line}\n", "bold")
    prose(page, "Where", entity(incident.labels), width)
    prose(page, "When", _when(incident), width)


def _when(incident: Incident) -> str:
    times = f", {incident.count:,} times" if incident.count > 1 else ""
    state = "" if incident.status == "open" else f", {incident.status}"
    why = f" ({incident.why})" if incident.why else ""
    if incident.first_seen is None:
        return f"the lines bear no date{times}{state}{why}"
    end = incident.resolved_at or incident.last_seen
    if end is None or end - incident.first_seen < timedelta(seconds=1):
        return f"{moment(incident.first_seen)}{times}{state}{why}"
    word = "resolved" if incident.resolved_at else "last seen"
    state = "" if incident.resolved_at and incident.status == "resolved" else state
    span = lasting(end - incident.first_seen)
    return f"since {moment(incident.first_seen)}, {word} {moment(end)} ({span}){times}{state}{why}"


def add_step(page: Text, number: int, step: RenderedStep, width: int) -> None:
    """Add a step of a fix with its settings, files and command."""
    sentence = f"{number}. {step.do} ({step.remark})" if step.remark else f"{number}. {step.do}"
    prose(page, "Fix" if number == 1 else "", sentence, width, hang="   ", style="bold")
    block(page, "", [f"   {visible(assignment)}" for assignment in step.assignments], "green")
    for path, content in step.file.items():
        block(page, "", [f"   {visible(path)}:", *(f"     {visible(line)}" for line in content.splitlines())], "green")
    block(page, "", [f"   {line}" for line in _command_lines(step.run, width - MARGIN - 3)], "green")


def _proof(page: Text, name: str, event: Evidence, width: int) -> None:
    block(page, name, [visible(event.place)], "cyan")
    lines = event.text.splitlines() or [""]
    shown_lines = [line for line in lines if not is_stack_frame(line)] or lines
    for line in shown_lines[:EVIDENCE_LINES]:
        prose(page, "", shortened(line, 4 * width), width, hang="  ", first="  ")
    if len(shown_lines) > EVIDENCE_LINES:
        prose(page, "", f"... {len(shown_lines) - EVIDENCE_LINES} more lines", width, first="  ")


def shortened(line: str, limit: int) -> str:
    """Return `line`; of a longer one than `limit` characters its beginning and its end."""
    return line if len(line) <= limit else f"{line[: limit // 2]} ... {line[-limit // 2 :]}"


def _symptom(symptom: Symptom) -> str:
    times = f"{symptom.count:,} x " if symptom.count != 1 else ""
    text = f"{times}{symptom.title or symptom.rule} [{symptom.rule}]"
    return f"{text} {entity(symptom.labels)}".strip()


def prose(page: Text, name: str, text: str, width: int, *, hang: str = "", first: str = "", style: str = "") -> None:
    """Add `text`, wrapped at `width`, behind the left-hand word `name`; nothing without text."""
    lines = wrapped(text, width - MARGIN - max(len(hang), len(first)))
    block(page, name, [(hang if number else first) + line for number, line in enumerate(lines)], style)


def block(page: Text, name: str, lines: Iterable[str], style: str = "") -> None:
    """Add lines as they are, the first one behind the left-hand word `name`."""
    for number, line in enumerate(lines):
        page.append(f"{name if number == 0 else '':<{MARGIN}}", "dim").append(f"{line}\n", style)


def _command_lines(command: str, width: int) -> Iterator[str]:
    """Yield a shell command as lines that can be pasted: each but the last ends in a backslash, of PowerShell in a backtick; an
    option stays with its value."""
    line, goes_on = "", "`" if _POWERSHELL.match(command) else "\\"
    for part in _parts(visible(command)):
        if line and cell_len(line) + 1 + cell_len(part) > width - 2:
            yield f"{line} {goes_on}"
            line = f"  {part}"
        else:
            line = f"{line} {part}" if line else part
    if line:
        yield line


def _parts(command: str) -> list[str]:
    """Split a command at blanks outside quotes; an option stays with the word after it."""
    parts: list[str] = []
    for word in _WORD.findall(command):
        if parts and not word.startswith("-") and parts[-1].startswith("-") and " " not in parts[-1]:
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts
