"""A Slack channel as a receiver, with an incoming webhook: it can only post, not edit or search messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, ClassVar
from urllib.request import Request

from msgspec import Struct
from msgspec.structs import replace

from connectors.slack.answers import REFUSED_BLOCKS, from_failure, from_hook, refused_blocks
from connectors.slack.blocks import paragraph, word
from connectors.slack.limits import paged
from connectors.slack.message import Message, change, parent
from connectors.slack.summary import is_over
from connectors.slack.thread import details
from engine.errors import UsageError
from engine.exchange import HttpAnswer, exchange, reached
from engine.model.addresses import may_carry_secrets
from engine.model.inspections import Inspection, doubt, fault
from engine.model.notifications import Notification, Reason, Receipt

_WHOLE = frozenset((Reason.OPENED, Reason.REOPENED, Reason.ROOT_CHANGED, Reason.BACKFILL, Reason.DIGEST, Reason.TEST))


class SlackWebhookReceiver(Struct, frozen=True):
    """The channel of the incoming webhook `url`."""

    url: str
    edits: ClassVar[bool] = False  # a webhook can only post
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = True  # people read it

    def __repr__(self) -> str:
        return "SlackWebhookReceiver()"  # the address is a secret

    @property
    def rate_limit_key(self) -> str:
        """The webhook: Slack allows about one message per second."""
        return f"slack:{self.url}"

    def inspect(self) -> list[Inspection]:
        """Try whether Slack is reached. Whether the webhook is valid only a message would show."""
        try:
            reached(self.url)
        except (OSError, HTTPException, ValueError) as failure:
            return [fault(from_failure(failure).why)]
        return [doubt("Slack answers; that the webhook is valid shows only when a message is sent: tocsin receivers test")]

    def deliver(self, notification: Notification) -> Receipt:
        """Post the incident, or one line on what changed. After an attempt with unknown outcome a message may appear twice."""
        message = _message(notification)
        try:
            answer = self._post(message.payload())
            if (error := answer.text.strip()) not in REFUSED_BLOCKS:
                return from_hook(answer)
            receipt = from_hook(self._post(message.plain()))
            return replace(receipt, why=receipt.why or refused_blocks(error))
        except (OSError, HTTPException, ValueError) as failure:
            return from_failure(failure)

    def _post(self, message: Mapping[str, Any]) -> HttpAnswer:
        body = json.dumps({**message, "unfurl_links": False, "unfurl_media": False}).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin"}
        return exchange(Request(self.url, body, headers, method="POST"))  # noqa: S310 - checked when it was opened


def open_webhook_receiver(url: str) -> SlackWebhookReceiver:
    """Return the receiver of `url`, which is a secret itself. Raises UsageError when it would be sent unencrypted."""
    if not may_carry_secrets(url):
        raise UsageError("webhook_url: must be an https address, or http on this machine, as the address is a secret")
    return SlackWebhookReceiver(url)


def _message(notification: Notification) -> Message:
    """Return the message of the incident with as much of its details as fits, as there is no thread; or its headline, what has
    changed and the first step of the fix."""
    incident, words = notification.incident, notification.words
    news = change(notification, "Fix" if notification.news else "")
    whole = parent(incident, notification.links, notification.members, words=words)
    if is_over(incident):
        return whole
    if notification.reason not in _WHOLE and news is not None:
        return Message(f"{whole.text}: {news.text}", [whole.blocks[0], *news.blocks])
    parts = (block for page in details(incident, notification.lines, words) for block in page.blocks)
    (blocks, *_), omissions = paged([*whole.blocks, *whole.barred, *parts], 1)
    remarks = [paragraph([word(words("{number:,} more parts did not fit in here.", number=omissions))])] if omissions else []
    return replace(whole, barred=[*blocks[len(whole.blocks) :], *remarks])
