"""The table of a storm: one row for each incident, as many as the message has room for; the thread has all of them.

Source of limits: docs.slack.dev, table block: 100 rows of 20 cells, one table in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from connectors.slack.blocks import paragraph, word
from connectors.slack.limits import SlackBlock, cut, shown_characters
from engine.model.incidents import Incident
from engine.model.links import Link
from engine.model.phrases import named
from engine.model.visible import visible
from engine.model.words import ENGLISH, Words, marked

MOST_SHOWN_ROWS, MOST_IN_CELL = 20, 90
_HEADINGS = marked("State", "Incident", "Since")
_EMOJI = {"critical": "🔴", "high": "🟠", "medium": "🟡", "low": "🔵", "info": "⚪"}


def table(members: Sequence[Incident], links: Iterable[Link], budget: int, words: Words = ENGLISH) -> Iterator[SlackBlock]:
    """Yield the table of `members` with at most `budget` characters, and a remark on those that have no room; nothing without
    members. A row leads to the page of its incident where there are pages."""
    pages = next((link.url for link in links if link.kind == "incidents"), "")
    is_one_kind = len({member.rule for member in members}) == 1
    rows = [[_cell([word(words(heading), bold=True)]) for heading in _HEADINGS]]
    for member in members[:MOST_SHOWN_ROWS]:
        row = _row(member, pages, is_one_kind, words)
        budget -= shown_characters(row)
        if budget < 0:
            break
        rows.append(row)
    if len(rows) > 1:
        yield {"type": "table", "rows": rows, "column_settings": [{"is_wrapped": True}, {"is_wrapped": True}]}
    if more := len(members) - (len(rows) - 1):
        yield paragraph([word(words("and {number:,} more in the thread", number=more))])


def sample_table() -> SlackBlock:
    """Return a table of one row, by which a workspace can be asked whether it takes tables."""
    return {"type": "table", "rows": [[_cell([word(heading)]) for heading in _HEADINGS]]}


def table_lines(block: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows of a table as text."""
    for row in block["rows"]:
        parts = [[part for section in cell["elements"] for part in section["elements"]] for cell in row]
        yield " | ".join("".join(str(part.get("text", part.get("fallback", ""))) for part in cell) for cell in parts)


def _row(member: Incident, pages: str, is_one_kind: bool, words: Words) -> list[SlackBlock]:
    state = words(member.severity if member.status == "open" else member.status)
    emoji = _EMOJI.get(member.severity, "⚪") if member.status in ("open", "acknowledged") else "✅"
    where = named({name: value for name, value in member.labels.items() if name != "cluster"})
    title = cut(visible((where if is_one_kind else f"{member.title} {where}").strip() or member.title), MOST_IN_CELL)
    link = {"type": "link", "url": f"{pages}incidents/{member.id}", "text": title} if pages else word(title)
    return [_cell([word(f"{emoji} {state}")]), _cell([link]), _cell([_since(member, words)])]


def _since(member: Incident, words: Words) -> SlackBlock:
    at = member.first_seen
    if at is None:
        return word(words("no time"))
    return {"type": "date", "timestamp": int(at.timestamp()), "format": "{time_secs}", "fallback": f"{at:%H:%M:%S} UTC"}


def _cell(elements: list[SlackBlock]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}
