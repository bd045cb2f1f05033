"""Render an incident for Slack: its message, which is kept up to date, and the replies in its thread.

All text from logs is in rich_text elements, which Slack shows literally: such text cannot format, link or mention. Only the
top-level text (push messages, search, screen readers) is escaped. Order: severity and title; entity and times; cause; fix;
evidence; symptoms; links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from connectors.slack.limits import MOST_IN_HEADER, MOST_IN_LINK, MOST_TEXT, SlackBlock, cut, fitted
from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.links import LineLinks, Link
from engine.model.notifications import DIGEST_HEADINGS, Notification, Reason
from engine.model.phrases import lasting, moment, named
from engine.model.visible import visible

_EVENTS, _LINES, _WIDTH = 3, 3, 300  # evidence in the message itself
_THREAD_EVENTS, _THREAD_LINES = 6, 20
_PROSE, _CODE = 1_500, 2_500
_STEPS, _SYMPTOMS, _LINKS = 6, 6, 5
_LONGEST_LINE_LINK = 1_000  # characters of an address beside a line of evidence: they count for the whole message

_FRAME = re.compile(r"\s+at |\s*\.\.\. \d+ (more|common frames)")  # frames of a stack trace, shown in the thread only


class Message(Struct, frozen=True):
    """A message to post: `text` is escaped; `blocks` may be empty."""

    text: str
    blocks: list[SlackBlock]


def parent(incident: Incident, links: Sequence[Link] = (), lines: Mapping[str, LineLinks] | None = None) -> Message:
    """Return the message of `incident` with `links`, and with `lines` by event id beside its evidence; for a merged incident
    only one line and the links."""
    headline = _headline(incident)
    where = visible(named(incident.labels))
    text = cut(escaped(": ".join(part for part in (headline, where) if part)), MOST_TEXT)
    if incident.status == "merged":
        line = f"{visible(incident.title)}: part of another incident now, {incident.merged_into}"
        return Message(text, [_prose(line), *_links(links)])
    blocks = [_header(headline), *_body(incident, lines or {}), *_links(links), _prose(incident.id, italic=True)]
    more = [_prose("More of the fix and the evidence did not fit in here.", italic=True), *_links(links)]
    return Message(text, fitted(blocks, more))


def reply(notification: Notification) -> Message | None:
    """Return the reply for the thread: the evidence of a new incident, else what changed; None when there is nothing to add."""
    incident = notification.incident
    if notification.reason in (Reason.OPENED, Reason.TEST):
        blocks = [*_proof(incident.evidence, _THREAD_EVENTS, _THREAD_LINES, notification.lines), *_checks(incident)]
        more = [_prose("More evidence did not fit in here.", italic=True)]
        return Message("Evidence", fitted(blocks, more)) if blocks else None
    if not notification.news:
        return None
    sentence = visible(notification.news)
    return Message(cut(escaped(sentence), MOST_TEXT), [_prose(cut(sentence, _PROSE))])


def is_loud(reason: Reason) -> bool:
    """Return whether a reply is shown in the channel too, for changes that must be noticed: an edit notifies nobody."""
    return reason in (Reason.ESCALATED, Reason.REOPENED, Reason.REPEATED)


def escaped(text: str) -> str:
    """Return `text` with Slack's three control characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _headline(incident: Incident) -> str:
    state = incident.severity.upper() if incident.status == "open" else incident.status.capitalize()
    return f"{state}: {visible(incident.title)}"


def _body(incident: Incident, lines: Mapping[str, LineLinks]) -> Iterator[SlackBlock]:
    yield from _paragraph("Where", named(incident.labels))
    yield from _paragraph("When", _when(incident))
    yield from _paragraph("Cause", incident.cause)
    yield from _paragraph("Impact", incident.impact)
    for number, step in enumerate(incident.fix[:_STEPS], 1):
        yield from _step(number, step)
    if incident.verify:
        yield from _paragraph("Verify", " ")
        yield _code(incident.verify)
    yield from _proof(incident.evidence, _EVENTS, _LINES, lines)
    yield from _explains(DIGEST_HEADINGS.get(incident.rule, "Explains"), incident.symptoms)
    yield from _paragraph("Or", ", ".join(incident.also_possible))
    yield from _references(incident.references)


def _when(incident: Incident) -> str:
    times = f", {incident.count:,} times" if incident.count > 1 else ""
    why = f" ({incident.why})" if incident.why else ""
    if incident.first_seen is None:
        return f"the lines bear no time{times}{why}"
    end = incident.resolved_at or incident.last_seen
    if end is None or end <= incident.first_seen:
        return f"{moment(incident.first_seen)}{times}{why}"
    word = "resolved" if incident.resolved_at else "last seen"
    return f"since {moment(incident.first_seen)}, {word} {moment(end)} ({lasting(end - incident.first_seen)}){times}{why}"


def _step(number: int, step: RenderedStep) -> Iterator[SlackBlock]:
    remarks = ", ".join(r for r in (step.where, "changes state" if step.changes_state else "") if r)
    yield from _paragraph(f"Fix {number}", f"{step.do} ({remarks})" if remarks else step.do)
    settings = [f"{key}={value}" for group in (step.set, step.also) for key, value in group.items()]
    files = [f"{path}:\n{content}" for path, content in step.file.items()]
    for code in ("\n".join(settings), *files, step.run):
        if code.strip():
            yield _code(code)


def _proof(evidence: Iterable[Evidence], events: int, lines: int, line_links: Mapping[str, LineLinks]) -> Iterator[SlackBlock]:
    for number, event in enumerate(evidence):
        if number == events:
            return
        place = f"{event.source_id}:{event.number}" if event.number else event.source_id
        yield from _paragraph("Evidence", place, line_links.get(event.event_id, LineLinks()).links)
        all_lines = [line for line in event.text.splitlines() if lines > _LINES or not _FRAME.match(line)]
        cut_lines = [cut(line, _WIDTH) for line in all_lines[:lines]]
        if len(all_lines) > lines:
            cut_lines.append(f"... and {len(all_lines) - lines} more")
        yield _code("\n".join(cut_lines))


def _explains(name: str, symptoms: tuple[Symptom, ...]) -> Iterator[SlackBlock]:
    lines = [f"{s.count:,} x {s.title or s.rule} {named(s.labels)}".strip() for s in symptoms[:_SYMPTOMS]]
    if len(symptoms) > _SYMPTOMS:
        lines.append(f"and {len(symptoms) - _SYMPTOMS} more")
    yield from _paragraph(name, "; ".join(lines))


def _checks(incident: Incident) -> Iterator[SlackBlock]:
    for check in incident.next_checks:
        yield from _paragraph("Check", check)


def _references(references: Iterable[str]) -> Iterator[SlackBlock]:
    urls = [url for url in references if url.startswith(("https://", "http://")) and len(url) <= MOST_IN_LINK][:_LINKS]
    yield from _line([{"type": "link", "url": url} for url in urls], "See ")


def _links(links: Iterable[Link]) -> Iterator[SlackBlock]:
    """Yield a line of links; addresses too long for Slack are left out, the incident's page has them."""
    yield from _line([{"type": "link", "url": x.url, "text": x.title} for x in links if len(x.url) <= MOST_IN_LINK], "Open ")


def _line(elements: Iterable[SlackBlock], start: str) -> Iterator[SlackBlock]:
    """Yield a paragraph of `elements` with `start` before the first and ` | ` between them; nothing without elements."""
    parts = [part for element in elements for part in ({"type": "text", "text": " | "}, element)]
    if parts:
        first: SlackBlock = {"type": "text", "text": start}
        yield {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [first, *parts[1:]]}]}


def _header(text: str) -> SlackBlock:
    return {"type": "header", "text": {"type": "plain_text", "text": cut(text, MOST_IN_HEADER), "emoji": False}}


def _paragraph(name: str, text: str, links: Sequence[Link] = ()) -> Iterator[SlackBlock]:
    """Yield a paragraph that starts with `name` in bold and ends with the first of `links` that is short; nothing when there
    is no text."""
    if text:
        start = {"type": "text", "text": f"{name}  ", "style": {"bold": True}}
        body = {"type": "text", "text": cut(visible(text), _PROSE)}
        links_in = [{"type": "link", "url": x.url, "text": x.title} for x in links if len(x.url) <= _LONGEST_LINE_LINK][:1]
        more = [part for link in links_in for part in ({"type": "text", "text": "  "}, link)]
        yield {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [start, body, *more]}]}


def _prose(text: str, italic: bool = False) -> SlackBlock:
    element: SlackBlock = {"type": "text", "text": text or " ", **({"style": {"italic": True}} if italic else {})}
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [element]}]}


def _code(text: str) -> SlackBlock:
    lines = "\n".join(visible(line) for line in text.split("\n"))
    element = {"type": "text", "text": cut(lines, _CODE) or " "}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [element]}]}
