"""A channel of Microsoft Teams as a receiver: an adaptive card for each notification, posted to the webhook of a workflow.

A workflow ("Send webhook alerts to a channel") can only post: nothing is edited or threaded.

Source of limits: Microsoft Teams documentation, "Create incoming webhooks" (a message has at most 28 kB, four requests a
second) and Power Automate (202 for an accepted run, 429 with Retry-After). All text is in text runs, which are shown as they
are: only a TextBlock would read text of logs as Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar

from msgspec import Struct

from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.incidents import QUIET, Incident
from engine.model.inspections import Inspection
from engine.model.notifications import Notification, Receipt
from engine.model.outlines import Passage, fitting, headline, outline
from engine.posting import inspected, is_page, json_request, posted

__all__ = ["TeamsReceiver", "open_receiver"]

MOST_BYTES = 28_000  # of a message
_CARD = "application/vnd.microsoft.card.adaptive"
_COLOURS = {"critical": "Attention", "high": "Attention", "medium": "Warning", "low": "Accent", "info": "Default"}
_MOST_CHARACTERS, _MOST_TITLE = 12_000, 300  # of all passages; of the headline
_OVER = frozenset(("resolved", "retracted", "merged"))
_BRIEF = frozenset(("Changed", "When", "Where"))  # what is shown of an incident that is over
_MOST_LINKS = 6  # Teams shows six actions

CardElement = dict[str, Any]


class TeamsReceiver(Struct, frozen=True):
    """The channel of the workflow with the webhook `url`."""

    url: str
    edits: ClassVar[bool] = False  # a workflow can only post
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = True  # people read it

    def __repr__(self) -> str:
        return "TeamsReceiver()"  # the address is a secret

    @property
    def rate_limit_key(self) -> str:
        """The webhook, as a digest."""
        return f"teams:{sha256(self.url.encode()).hexdigest()[:12]}"

    def inspect(self) -> list[Inspection]:
        """Try whether the server is reached; nothing is posted."""
        return [inspected(self.url, "Teams")]

    def deliver(self, notification: Notification) -> Receipt:
        """Post a card. After an attempt with unknown outcome it may appear twice."""
        return posted(json_request(self.url, message(notification)), "Teams", accepts=lambda answer: not is_page(answer))


def open_receiver(url: str) -> TeamsReceiver:
    """Return the receiver of `url`, which is a secret itself. Raises UsageError when it would be sent unencrypted."""
    if not may_carry_secrets(url):
        raise UsageError("webhook_url: must be an https address, or http on this machine, as the address is a secret")
    return TeamsReceiver(url)


def message(notification: Notification) -> Mapping[str, Any]:
    """Return the message for the webhook, of at most MOST_BYTES: the last parts that do not fit are counted."""
    passages = outline(notification)
    if notification.incident.status in _OVER:
        passages = tuple(passage for passage in passages if passage.name in _BRIEF)
    budget = _MOST_CHARACTERS
    while True:
        value = _message(notification.incident, fitting(passages, budget, notification.words), notification)
        if not budget or len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) <= MOST_BYTES:
            return value
        budget //= 2


def _message(incident: Incident, passages: Sequence[Passage], notification: Notification) -> Mapping[str, Any]:
    title, links = headline(incident, notification.words)[:_MOST_TITLE], notification.links
    heading = _text_run(title, weight="Bolder", size="Medium", color=_colour(incident))
    body = [_rich([heading]), *(part for passage in passages for part in _passage(passage))]
    card: CardElement = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "fallbackText": title,
        "body": body,
    }
    if links:
        card["actions"] = [
            {"type": "Action.OpenUrl", "title": notification.words(x.title), "url": x.url} for x in links[:_MOST_LINKS]
        ]
    return {"type": "message", "attachments": [{"contentType": _CARD, "contentUrl": None, "content": card}]}


def _colour(incident: Incident) -> str:
    if incident.status in _OVER:
        return "Good" if incident.status == "resolved" and incident.why != QUIET else "Default"
    return _COLOURS.get(incident.severity, "Default")


def _passage(passage: Passage) -> list[CardElement]:
    parts = [_rich([_text_run(f"{passage.heading}  ", weight="Bolder"), _text_run(passage.text or " ")])]
    if passage.code:
        lines = [_rich([_text_run(line or " ", fontType="Monospace")], spacing="None") for line in passage.code.split("\n")]
        parts.append({"type": "Container", "style": "emphasis", "items": lines})
    return parts


def _rich(runs: Sequence[CardElement], **more: str) -> CardElement:
    return {"type": "RichTextBlock", "inlines": list(runs), **more}


def _text_run(text: str, **style: str) -> CardElement:
    return {"type": "TextRun", "text": text, **style}
