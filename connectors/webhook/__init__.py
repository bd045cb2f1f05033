"""A generic webhook as a receiver: each notification is a JSON document, sent by HTTP POST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit
from urllib.request import Request

from msgspec import Struct

from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.answers import lines_value
from engine.model.incidents import Incident
from engine.model.inspections import Inspection
from engine.model.notifications import Notification, Reason, Receipt
from engine.posting import inspected, json_request, posted

__all__ = ["WebhookReceiver", "open_receiver"]

SCHEMA = 1


class WebhookReceiver(Struct, frozen=True):
    """Posts `{"schema", "reason", "news", "incident", "links"}` to `url`; `value_of` returns the JSON value of an incident.

    With a Kibana there are also `query`, which narrows the logs to the incident, and `lines`, the links of its evidence.

    Every request has an `Idempotency-Key`, which is the same when a notification is sent again after an attempt with unknown
    outcome.
    """

    url: str
    value_of: Callable[[Incident], Mapping[str, Any]]
    token: str = ""
    edits: ClassVar[bool] = False  # the server gets changes of state, not every new count
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = False  # a program reads its messages

    def __repr__(self) -> str:
        return f"WebhookReceiver({self.rate_limit_key})"  # the address and the token may both be secret

    @property
    def rate_limit_key(self) -> str:
        """The host."""
        return f"webhook:{urlsplit(self.url).hostname}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post `notification`. 2xx is delivered; 400, 410, 413, 415 and 422 are rejected; any other status is tried again."""
        return posted(self._request(notification), "the webhook")

    def inspect(self) -> list[Inspection]:
        """Try whether the server is reached; nothing is posted."""
        return [inspected(self.url, "the webhook")]

    def _request(self, notification: Notification) -> Request:
        incident, reason = notification.incident, notification.reason.value
        document = {"schema": SCHEMA, "reason": reason, "news": notification.news, "incident": self.value_of(incident)}
        document["links"] = {link.kind: link.url for link in notification.links}
        if notification.lines:
            document |= {"query": notification.query, "lines": lines_value(incident, notification.lines)}
        key = f"{incident.id}/{incident.edition}/{reason}"
        if (
            notification.reason is Reason.REPEATED and notification.last_at is not None
        ):  # nothing else differs from the last one
            key += f"/{notification.last_at:%Y%m%dT%H%M%S}"
        headers = {"Idempotency-Key": key}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return json_request(self.url, document, headers)


def open_receiver(url: str, value_of: Callable[[Incident], Mapping[str, Any]], token: str = "") -> WebhookReceiver:
    """Return the receiver of `url`.

    Raises UsageError when it is not an http or https address, or when a token would be sent unencrypted.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError("url of a webhook: must be an http or https address")
    if token and not may_carry_secrets(url):
        raise UsageError("url of a webhook: a token is sent to https addresses and to this machine only")
    return WebhookReceiver(url, value_of, token)
