"""A generic webhook as a receiver: each notification is a JSON document, sent by HTTP POST."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request

from msgspec import Struct

from engine.errors import UsageError
from engine.exchange import HttpAnswer, exchange, reached
from engine.model.addresses import may_carry_secrets
from engine.model.answers import lines_value
from engine.model.incidents import Incident
from engine.model.inspections import Inspection, fault
from engine.model.notifications import DeliveryState, Notification, Receipt

__all__ = ["WebhookReceiver", "open_receiver"]

SCHEMA = 1
_FINAL = frozenset((400, 410, 413, 415, 422))  # the server has rejected the document itself, or is gone for good


class WebhookReceiver(Struct, frozen=True):
    """Posts `{"schema", "reason", "news", "incident", "links"}` to `url`; `value_of` returns the JSON value of an incident.

    With a Kibana there are also `query`, which narrows the logs to the incident, and `lines`, the links of its evidence.

    Every request has an `Idempotency-Key`, which is the same when a notification is sent again after an attempt with unknown
    outcome.
    """

    url: str
    value_of: Callable[[Incident], Mapping[str, Any]]
    token: str = ""

    def __repr__(self) -> str:
        return f"WebhookReceiver({self.rate_limit_key})"  # the address and the token may both be secret

    @property
    def edits(self) -> bool:
        """False: the server gets changes of state, not every new count."""
        return False

    @property
    def records(self) -> bool:
        """False: routes decide what it is notified of."""
        return False

    @property
    def rate_limit_key(self) -> str:
        """The host."""
        return f"webhook:{urlsplit(self.url).hostname}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post `notification`. 2xx is delivered; 400, 410, 413, 415 and 422 are rejected.

        Any other status is tried again later: it may come from a proxy, or somebody may correct the address or the token.
        """
        try:
            return _receipt(exchange(self._request(notification)))
        except (OSError, HTTPException, ValueError) as error:
            sentence, is_sure = _failure(error)
            return Receipt(DeliveryState.RETRY_LATER, sentence, unsure=not is_sure)

    def inspect(self) -> list[Inspection]:
        """Try whether the server is reached; nothing is posted."""
        try:
            answer = reached(self.url)
        except (OSError, HTTPException, ValueError) as error:
            return [fault(_failure(error)[0])]
        if answer.is_redirect:
            return [fault(f"the server answers with a redirect to {answer.redirection()}, which is not followed; check url")]
        return [Inspection("the server answers; nothing was posted")]

    def _request(self, notification: Notification) -> Request:
        incident, reason = notification.incident, notification.reason.value
        document = {"schema": SCHEMA, "reason": reason, "news": notification.news, "incident": self.value_of(incident)}
        document["links"] = {link.kind: link.url for link in notification.links}
        if notification.lines:
            document |= {"query": notification.query, "lines": lines_value(incident, notification.lines)}
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "tocsin",
            "Idempotency-Key": f"{incident.id}/{incident.edition}/{reason}",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        body = json.dumps(document, ensure_ascii=False).encode()
        return Request(self.url, body, headers, method="POST")  # noqa: S310 - the scheme is checked in open_receiver


def open_receiver(url: str, value_of: Callable[[Incident], Mapping[str, Any]], token: str = "") -> WebhookReceiver:
    """Return the receiver of `url`.

    Raises UsageError when it is not an http or https address, or when a token would be sent unencrypted.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError("url of a webhook: must be an http or https address")
    if token and not may_carry_secrets(url):
        raise UsageError("url of a webhook: a token is sent to https addresses and to this machine only")
    return WebhookReceiver(url, value_of, token)


def _failure(error: Exception) -> tuple[str, bool]:
    """Return a sentence about a failed exchange, and whether it is sure that nothing was sent."""
    cause = error.reason if isinstance(error, URLError) else error
    how = "does not answer in time" if isinstance(cause, TimeoutError) else f"cannot be reached ({type(cause).__name__})"
    return f"the webhook {how}", isinstance(cause, ConnectionRefusedError | socket.gaierror)


def _receipt(answer: HttpAnswer) -> Receipt:
    if 200 <= answer.status < 300:
        return Receipt(DeliveryState.DELIVERED)
    if answer.is_redirect:
        redirect = f"a redirect to {answer.redirection()} (status {answer.status}), which is not followed; check url"
        return Receipt(DeliveryState.RETRY_LATER, f"the webhook answers with {redirect}")
    quoted = answer.quoted()
    why = f"the webhook answers with status {answer.status}{f': {quoted}' if quoted else ''}"
    if answer.status in _FINAL:
        return Receipt(DeliveryState.REJECTED, why)
    after = answer.headers.get("retry-after", "")
    after_s = float(after) if re.fullmatch(r"[0-9]{1,9}", after) else None
    return Receipt(DeliveryState.RETRY_LATER, why, after_s=after_s, unsure=answer.status >= 500)
