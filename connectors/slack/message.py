"""Render an incident for Slack: its message, which is short and kept up to date, and one line for each change.

Everything that the message does not show is in the thread (connectors/slack/thread.py). Only the top-level text (push messages,
search, screen readers) is escaped. What the reader needs first is in the blocks; proof is beside the bar with the colour of the
severity, in an attachment, which Slack may fold.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from connectors.slack.blocks import buttons, footnote, header, paragraph, time, with_code, word
from connectors.slack.limits import MOST_PLAIN, MOST_TEXT, SlackBlock, cut
from connectors.slack.summary import MOST_IN_REMARK, MOST_IN_WHY, Summary, codes, is_over, summary
from connectors.slack.table import table, table_lines
from engine.model.incidents import QUIET, Incident
from engine.model.links import Link
from engine.model.notifications import DIGEST_HEADINGS, Notification, Reason
from engine.model.outlines import headline, remark
from engine.model.phrases import named
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked

_SEVERITIES = {
    "critical": ("🔴", "#b3001b"),
    "high": ("🟠", "#e8590c"),
    "medium": ("🟡", "#f2c744"),
    "low": ("🔵", "#3b82f6"),
    "info": ("⚪", "#9ca3af"),
}
_GREY, _GREEN = "#9ca3af", "#2eb886"
_MOST_ID = 90
_PROSE = 1_500
_NUMBER = re.compile(r"\d+")


(NEW_FIX,) = marked("The fix is now")


class Message(Struct, frozen=True):
    """A message to post: `text` is escaped; `barred` are the blocks beside a bar of `colour`."""

    text: str
    blocks: list[SlackBlock]
    barred: list[SlackBlock] = []
    colour: str = ""

    def payload(self) -> dict[str, Any]:
        """Return its arguments of Slack's methods; `attachments` always, as an edit without it would keep the earlier ones."""
        attachments = [{"color": self.colour, "blocks": self.barred}] if self.barred else []
        return {"text": self.text, "blocks": self.blocks, "attachments": attachments}

    def plain(self) -> dict[str, Any]:
        """Return the arguments for a workspace that refuses the blocks: all texts as text."""
        lines = [line for block in (*self.blocks, *self.barred) for line in plain_lines(block)]
        return {"text": cut(escaped("\n".join(lines)), MOST_PLAIN) or self.text, "blocks": [], "attachments": []}


def parent(
    incident: Incident,
    links: Sequence[Link] = (),
    members: Sequence[Incident] = (),
    *,
    has_buttons: bool = False,
    words: Words = ENGLISH,
) -> Message:
    """Return the message of `incident` with a button for each of `links`: at most 10 blocks and 1,500 characters.

    `members` are the incidents of a storm, whose message has a table of them. With `has_buttons` an incident can be acted on.
    That of an incident that is over, or was merged into another, is one line.
    """
    shown, where = summary(incident, words), visible(named(incident.labels))
    text = cut(escaped(": ".join(part for part in (headline(incident, words), where) if part)), MOST_TEXT)
    if is_over(incident):
        line = paragraph(_ending(incident, shown.title.shown, words))
        is_good = incident.status == "resolved" and incident.why != QUIET
        return Message(
            text, [line], [*buttons(links, words=words), footnote(_identity(incident))], _GREEN if is_good else _GREY
        )
    emoji, colour = _SEVERITIES.get(incident.severity, ("⚪", _GREY))
    state = paragraph(facts(incident, shown.where.shown, words))
    blocks = [header(f"{emoji} {shown.title.shown}"), state, *_advice(incident, shown, words)]
    blocks += table(members, links, shown.room, words)
    acting = incident if has_buttons and incident.rule not in DIGEST_HEADINGS else None
    return Message(text, [*blocks, *buttons(links, acting, words)], list(_proof(incident, shown, words)), colour)


def change(notification: Notification, fix_label: str = "") -> Message | None:
    """Return the line for the thread on what changed, and below `fix_label`, where one is given, the first step of the
    fix of an incident that is not over; None when there is nothing to add."""
    incident, words = notification.incident, notification.words
    sentence = cut(visible(notification.news), _PROSE)
    blocks = [paragraph([word(sentence)])] if sentence else []
    if fix_label and incident.fix and not is_over(incident):
        sentence = sentence or words("the fix has changed")
        shown = summary(incident, words)
        start = [word(f"{words(fix_label)}  ", bold=True), word(_step(incident, shown, words))]
        blocks.append(with_code(start, shown.command) if shown.command else paragraph(start))
    return Message(cut(escaped(sentence), MOST_TEXT), blocks) if blocks else None


def fix_mark(incident: Incident) -> str:
    """Return a fingerprint of the commands and settings of the fix: that without its numbers, `:`, and that with them. Empty
    without a fix, and for an incident that is over: its fix is not advice any more."""
    code = "\n".join(code for step in incident.fix for code in codes(step) or [step.where])
    if not incident.fix or is_over(incident):
        return ""
    return ":".join(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12] for text in (_NUMBER.sub("0", code), code))


def facts(incident: Incident, place: str = "", words: Words = ENGLISH) -> list[SlackBlock]:
    """Return the elements that state severity, status, times, count and reason; `place` on a line of its own."""
    state = words(incident.severity.upper()) + ("" if incident.status == "open" else f", {words(incident.status)}")
    why = _reason(incident, words)
    times = f" · {words('{number:,} times', number=incident.count)}" if incident.count > 1 else ""
    where = f"\n{place}" if place else ""
    if incident.first_seen is None:
        return [word(state, bold=True), word(f" · {words('the lines bear no date')}{times}{why}{where}")]
    since = [word(state, bold=True), word(words(" since ")), time(incident.first_seen, words)]
    if incident.last_seen is None or (incident.last_seen - incident.first_seen).total_seconds() < 1:
        return [*since, word(f"{times}{why}{where}")] if times or why or where else since
    return [*since, word(f" · {words('last seen ')}"), time(incident.last_seen, words), word(f"{times}{why}{where}")]


def is_loud(reason: Reason, earlier_fix: str = "", fix: str = "") -> bool:
    """Return whether a change is shown in the channel too, as an edit notifies nobody: one that must be noticed, or a fix that
    differs by more than its numbers."""
    is_another = bool(earlier_fix and fix) and earlier_fix.partition(":")[0] != fix.partition(":")[0]
    return is_another or reason in (Reason.ESCALATED, Reason.REOPENED, Reason.REPEATED)


def escaped(text: str) -> str:
    """Return `text` with Slack's three control characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain_lines(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a block as text; addresses follow the text of their link or button."""
    if block["type"] == "table":
        yield from table_lines(block)
    elif "text" in block:
        yield str(block["text"]["text"])
    elements = block.get("elements", ())
    if block["type"] in ("actions", "context"):
        yield " | ".join(f"{x['text']['text']}: {x['url']}" if "url" in x else str(x["text"]) for x in elements)
        return
    for element in elements:
        yield "".join(map(_plain, element.get("elements", ())))


def _plain(part: Mapping[str, Any]) -> str:
    if part["type"] == "date":
        return str(part["fallback"])
    if part["type"] == "link":
        return f"{part['text']}: {part['url']}" if "text" in part else str(part["url"])
    return str(part["text"])


def _advice(incident: Incident, shown: Summary, words: Words) -> Iterator[SlackBlock]:
    if shown.cause.shown:
        yield paragraph([word(shown.cause.shown)])
    if shown.step.shown or shown.command:
        step = [word(f"{words('Fix')}  ", bold=True), word(_step(incident, shown, words))]
        yield with_code(step, shown.command) if shown.command else paragraph(step)
    if shown.members:
        more = len(incident.symptoms) - len(shown.members)
        lines = [*shown.members, *([words("and {number:,} more in the thread", number=more)] if more else [])]
        yield with_code([word(words(DIGEST_HEADINGS[incident.rule]), bold=True)], "\n".join(lines))


def _step(incident: Incident, shown: Summary, words: Words) -> str:
    sentence, where = shown.step.shown, cut(remark(incident.fix[0], words), MOST_IN_REMARK)
    return f"{sentence.removesuffix('.')}{where}" if where else sentence


def _proof(incident: Incident, shown: Summary, words: Words) -> Iterator[SlackBlock]:
    if shown.proof:
        yield with_code([word(words("Proof"), bold=True)], "\n".join(line.text for line in shown.proof))
    yield footnote(" · ".join(part for part in (shown.explains, _identity(incident)) if part))


def _identity(incident: Incident) -> str:
    return cut(visible(f"{incident.id} · {incident.rule}"), _MOST_ID)


def _ending(incident: Incident, title: str, words: Words) -> list[SlackBlock]:
    if incident.status == "merged":
        return [word(f"{title}: {words('part of another incident now: {id}', id=incident.merged_into)}")]
    state, first, end = words(incident.status.capitalize()), incident.first_seen, incident.resolved_at
    if incident.status == "resolved" and first is not None and end is not None and end > first:
        state = words("Resolved after {span}", span=words.span(end - first))
    emoji = "✅" if incident.status == "resolved" and incident.why != QUIET else "⚪"
    return [word(f"{emoji} {state}", bold=True), word(f"{_reason(incident, words)}: {title}")]


def _reason(incident: Incident, words: Words) -> str:
    return f" ({cut(visible(words.sentence(incident.why)), MOST_IN_WHY)})" if incident.why else ""
