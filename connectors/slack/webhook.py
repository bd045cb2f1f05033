"""A Slack channel told through an incoming webhook: every message is a new one, nothing can be edited or looked up."""

from __future__ import annotations

from http.client import HTTPException

from msgspec import Struct
from slack_sdk.errors import SlackClientError
from slack_sdk.webhook import WebhookClient

from connectors.slack.answers import from_answer, from_failure
from connectors.slack.message import Message, parent, reply
from connectors.slack.receiver import TIMEOUT_S
from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.notifications import Notification, Reason, Receipt, State

_WHOLE = frozenset((Reason.OPENED, Reason.REOPENED, Reason.ROOT_CHANGED, Reason.BACKFILL, Reason.DIGEST, Reason.TEST))


class SlackWebhookReceiver(Struct, frozen=True):
    """The channel that the webhook of `client` belongs to."""

    client: WebhookClient

    @property
    def edits(self) -> bool:
        """False: a webhook can only post."""
        return False

    @property
    def lane(self) -> str:
        """The webhook: about one message a second."""
        return f"slack:{self.client.url}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post the incident, or one line on what changed. After an attempt of unknown outcome a message may come twice."""
        message = _message(notification)
        try:
            answer = self.client.send(text=message.text, blocks=message.blocks, unfurl_links=False, unfurl_media=False)
        except (OSError, HTTPException, SlackClientError, ValueError) as error:
            return from_failure(error)
        if answer.status_code == 200:
            return Receipt(State.DELIVERED)
        return from_answer(answer.status_code, answer.body.strip()[:100], answer.headers)


def open_webhook_receiver(url: str) -> SlackWebhookReceiver:
    """Return the receiver behind `url`, which is a secret itself. Raises UsageError when it would travel unprotected."""
    if not may_carry_secrets(url):
        raise UsageError("webhook_url: such an address is used with https and on this machine only")
    return SlackWebhookReceiver(WebhookClient(url, timeout=TIMEOUT_S, retry_handlers=[]))


def _message(notification: Notification) -> Message:
    whole, news = parent(notification.incident, notification.links), reply(notification)
    if notification.reason in _WHOLE or news is None:
        return whole
    return Message(f"{whole.text}: {news.text}", [whole.blocks[0], *news.blocks])
