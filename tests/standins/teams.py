"""A stand-in for the webhook of a workflow of Microsoft Teams: it refuses cards that Teams would not show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.standins.http import HttpStandIn, StandInReply, TakenRequest

_MOST_BYTES = 28 * 1024
_ELEMENTS = {"RichTextBlock": "inlines", "Container": "items", "TextRun": "", "TextBlock": ""}


class TeamsStandIn(HttpStandIn):
    """`cards`: every card that was posted."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.cards: list[dict[str, Any]] = []

    @property
    def webhook_url(self) -> str:
        """The address of the workflow."""
        return f"{self.address}/workflows/0/triggers/manual/paths/invoke?sig=secret"

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Judge and keep one card."""
        if behaviour not in ("accept", "drop", "hold"):
            return StandInReply(404, behaviour)
        if request.size > _MOST_BYTES:
            return StandInReply(413, "the message is too large")
        (attachment,) = request.value["attachments"]
        card = attachment["content"]
        if request.value["type"] != "message" or attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
            return StandInReply(400, "not a message with an adaptive card")
        if wrong := [*_wrong(card["body"]), *(x for x in card.get("actions", ()) if x["type"] != "Action.OpenUrl")]:
            return StandInReply(400, f"TriggerInputSchemaMismatch: {wrong[0]}")
        self.cards.append(card)
        return StandInReply(202)


def texts(value: Any) -> list[str]:
    """Return every text of a part of a card, in order."""
    if isinstance(value, list):
        return [text for part in value for text in texts(part)]
    own = [value["text"]] if "text" in value else []
    return [*own, *texts(value.get("inlines", [])), *texts(value.get("items", [])), *texts(value.get("body", []))]


def _wrong(elements: list[dict[str, Any]]) -> Iterator[str]:
    for element in elements:
        inner = _ELEMENTS.get(element["type"])
        if inner is None:
            yield f"an element of type {element['type']}"
        elif inner:
            if not element[inner]:
                yield f"an empty {element['type']}"
            yield from _wrong(element[inner])
        elif not element.get("text"):
            yield f"an empty {element['type']}"
