"""The report of a scan as Markdown, for tickets and post-mortems. Text of logs is escaped, or stands in code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from engine.cli.overview import headline, minor_in_full, remarks
from engine.cli.report import shown_events
from engine.cli.triage import Triage
from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.phrases import lasting, moment, named
from engine.model.placeholders import unfilled_in, why_unfilled
from engine.model.visible import visible
from engine.picture import describe

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")
_TICKS = re.compile(r"`+")
MOST_LINES = 12  # of an event: the rest is a stack trace


def render_markdown(triage: Triage) -> str:
    """Return the report of a scan, ending in a line end: every incident in full, or the first of what is minor where there is
    none, then what is no incident."""
    in_full = minor_in_full(triage)
    parts = [f"# {plain_text(headline(triage))}", *(_incident(incident) for incident in (*triage.incidents, *in_full))]
    rest = replace(triage, minor=triage.minor[len(in_full) :])
    parts += [_section(heading, [f"- {plain_text(text)}" for text in texts], 2) for heading, texts in remarks(rest) if texts]
    return "\n\n".join(parts) + "\n"


def plain_text(text: str) -> str:
    """Return text on one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))


def code_block(text: str, language: str = "") -> str:
    """Return text as a fenced block; its fence is longer than any run of backticks in it."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))
    return f"{fence}{language}\n{lines}\n{fence}"


def _incident(incident: Incident) -> str:
    title = f"## {incident.severity.upper()}: {plain_text(incident.title)}"
    sections = [
        title,
        _facts(incident),
        _section("Cause", [plain_text(incident.cause)] if incident.cause else []),
        _section("Impact", [plain_text(incident.impact)] if incident.impact else []),
        _section("Timeline", list(_timeline(incident))),
        _section("Fix", [step_item(number, step) for number, step in enumerate(incident.fix, 1)]),
        _section("Fill in", [plain_text(why)] if (why := why_unfilled(unfilled_in(incident))) else []),
        _section("Verify", [code_block(incident.verify, "sh")] if incident.verify else []),
        _section("Proof", [_proof(event) for event in shown_events(incident.evidence)]),
        _section("What it explains", [_symptom(symptom) for symptom in incident.symptoms]),
        _section("Next checks", [f"- {plain_text(check)}" for check in incident.next_checks]),
        _section("References", [f"- <{visible(address)}>" for address in incident.references]),
    ]
    return "\n\n".join(section for section in sections if section)


def _facts(incident: Incident) -> str:
    end = incident.resolved_at or incident.last_seen
    facts = {"Status": incident.status + (f" ({incident.why})" if incident.why else ""), "Where": named(incident.labels)}
    if incident.first_seen is not None and end is not None:
        facts["Since"] = moment(incident.first_seen)
        facts["Resolved" if incident.resolved_at else "Last seen"] = f"{moment(end)} ({lasting(end - incident.first_seen)})"
    facts |= {"Times": f"{incident.count:,}", "Rule": incident.rule}
    return "\n".join(f"- **{name}**: {plain_text(text)}" for name, text in facts.items() if text)


def _timeline(incident: Incident) -> Iterator[str]:
    picture = describe(incident)
    for lane, mark in picture.in_order() if picture is not None else ():
        yield f"- {moment(mark.begin)} **{plain_text(lane)}**: {plain_text(mark.sentence)}"


def step_item(number: int, step: RenderedStep) -> str:
    """Return a step of a fix as an item of a list, with its settings, files and command in code blocks."""
    blocks = [f"{number}. {plain_text(step.do)}{f' *({plain_text(step.remark)})*' if step.remark else ''}"]
    blocks += [code_block(_assigned(settings), "properties") for settings in (step.set, step.also) if settings]
    for path, content in step.file.items():
        blocks += [f"{plain_text(path)}:", code_block(content)]
    blocks += [code_block(step.run, "sh")] if step.run else []
    return "\n\n".join(blocks).replace("\n", "\n   ").replace("\n   \n", "\n\n")


def _assigned(settings: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())


def _proof(event: Evidence) -> str:
    lines = event.text.rstrip("\n").split("\n")
    more = f"\n... {len(lines) - MOST_LINES} more lines" if len(lines) > MOST_LINES else ""
    return f"{plain_text(event.place)}\n\n{code_block(chr(10).join(lines[:MOST_LINES]) + more)}"


def _symptom(symptom: Symptom) -> str:
    times = f"{symptom.count:,} x " if symptom.count != 1 else ""
    return f"- {times}{plain_text(symptom.title or symptom.rule)} {plain_text(named(symptom.labels))}".rstrip()


def _section(heading: str, items: Sequence[str], level: int = 3) -> str:
    """Return a section; list items of one line stand together, other items apart. Empty without items."""
    if not items:
        return ""
    is_list = all("\n" not in item and item.startswith("- ") for item in items)
    return f"{'#' * level} {heading}\n\n" + ("\n" if is_list else "\n\n").join(items)
