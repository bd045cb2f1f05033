"""The Slack message of an incident and the details in its thread, as text for a terminal and as the JSON that is posted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connectors.slack import details, parent
from engine.model.incidents import Incident
from engine.model.links import Link


def slack_text(incident: Incident, links: Sequence[Link] = ()) -> str:
    """Return the Slack message of `incident` and its thread as text: code has a bar at its left, what is beside the bar of the
    severity's colour a double one, the thread an arrow."""
    message = parent(incident, links)
    lines = [*_blocks(message.blocks), *(f"║ {line}" for line in _blocks(message.barred))]
    for page in details(incident):
        lines += ["", f"↳ {page.text}", *(f"  {line}" for line in _blocks(page.blocks))]
    return "\n".join(line.rstrip() for line in lines)


def slack_json(incident: Incident) -> Mapping[str, Any]:
    """Return the Slack message as posted (`text`, `blocks`, `attachments`) and those of its `thread`."""
    return {**parent(incident).payload(), "thread": [page.payload() for page in details(incident)]}


def _blocks(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)


def _block(block: Mapping[str, Any]) -> Iterator[str]:
    if block["type"] == "header":
        yield f"# {block['text']['text']}"
    elif block["type"] in ("actions", "context"):
        yield "  ".join(f"[{x['text']['text']}]" if x["type"] == "button" else f"({x['text']})" for x in block["elements"])
    else:
        for element in block["elements"]:
            text = "".join(_inline(part) for part in element["elements"])
            code = element["type"] == "rich_text_preformatted"
            yield from (f"    | {line}" if code else line for line in text.split("\n"))


def _inline(part: Mapping[str, Any]) -> str:
    if part["type"] == "link":
        return f"{part['text']} <{part['url']}>" if "text" in part else str(part["url"])
    if part["type"] == "date":
        return str(part["fallback"])
    text = str(part["text"])
    return f"*{text.strip()}* " if part.get("style", {}).get("bold") else text
