"""A Slack channel as a receiver, with an incoming webhook: it can only post, not edit or search messages."""

from __future__ import annotations

import json
from http.client import HTTPException
from urllib.request import Request

from msgspec import Struct

from connectors.slack.answers import from_failure, from_hook
from connectors.slack.message import Message, parent, reply
from engine.errors import UsageError
from engine.exchange import exchange
from engine.model.addresses import may_carry_secrets
from engine.model.notifications import Notification, Reason, Receipt

_WHOLE = frozenset((Reason.OPENED, Reason.REOPENED, Reason.ROOT_CHANGED, Reason.BACKFILL, Reason.DIGEST, Reason.TEST))


class SlackWebhookReceiver(Struct, frozen=True):
    """The channel of the incoming webhook `url`."""

    url: str

    def __repr__(self) -> str:
        return "SlackWebhookReceiver()"  # the address is a secret

    @property
    def edits(self) -> bool:
        """False: a webhook can only post."""
        return False

    @property
    def records(self) -> bool:
        """False: routes decide what it is notified of."""
        return False

    @property
    def rate_limit_key(self) -> str:
        """The webhook: Slack allows about one message per second."""
        return f"slack:{self.url}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post the incident, or one line on what changed. After an attempt with unknown outcome a message may appear twice."""
        message = _message(notification)
        body = {"text": message.text, "blocks": message.blocks, "unfurl_links": False, "unfurl_media": False}
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin"}
        request = Request(self.url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - checked when it was opened
        try:
            return from_hook(exchange(request))
        except (OSError, HTTPException, ValueError) as error:
            return from_failure(error)


def open_webhook_receiver(url: str) -> SlackWebhookReceiver:
    """Return the receiver of `url`, which is a secret itself. Raises UsageError when it would be sent unencrypted."""
    if not may_carry_secrets(url):
        raise UsageError("webhook_url: must be an https address, or http on this machine, as the address is a secret")
    return SlackWebhookReceiver(url)


def _message(notification: Notification) -> Message:
    whole, news = parent(notification.incident, notification.links, notification.lines), reply(notification)
    if notification.reason in _WHOLE or news is None:
        return whole
    return Message(f"{whole.text}: {news.text}", [whole.blocks[0], *news.blocks])
