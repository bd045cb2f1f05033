"""The Slack message of an incident, as text for a terminal and as the JSON that is posted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connectors.slack.message import parent
from engine.model.incidents import Incident


def slack_text(incident: Incident) -> str:
    """Return the Slack message of `incident` as text: each block is a paragraph, code has a bar at its left."""
    return "\n".join(line for block in parent(incident).blocks for line in _block(block))


def slack_json(incident: Incident) -> Mapping[str, Any]:
    """Return the Slack message as posted: `text` and `blocks`."""
    message = parent(incident)
    return {"text": message.text, "blocks": message.blocks}


def _block(block: Mapping[str, Any]) -> Iterator[str]:
    if block["type"] == "header":
        yield from (f"# {block['text']['text']}", "")
        return
    for element in block.get("elements", ()):
        text = "".join(_inline(part) for part in element.get("elements", ()))
        code = element["type"] == "rich_text_preformatted"
        yield from (f"    | {line}" if code else line for line in text.split("\n"))


def _inline(part: Mapping[str, Any]) -> str:
    if part["type"] == "link":
        return f"{part['text']} <{part['url']}>" if "text" in part else str(part["url"])
    text = str(part.get("text", ""))
    return f"*{text.strip()}* " if part.get("style", {}).get("bold") else text
