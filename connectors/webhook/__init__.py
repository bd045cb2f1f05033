"""A generic webhook as a receiver: each notification is one JSON document, sent by HTTP POST."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from msgspec import Struct

from engine.errors import UsageError
from engine.model.addresses import may_carry_secrets
from engine.model.incidents import Incident
from engine.model.notifications import Notification, Receipt, State

__all__ = ["WebhookReceiver", "open_receiver"]

SCHEMA = 1
TIMEOUT_S = 15
_LATER = frozenset((408, 425, 429))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another host: it is answered as what it is, a refusal."""

    def redirect_request(self, *_: Any) -> None:
        return None


class WebhookReceiver(Struct, frozen=True):
    """Posts `{"schema", "reason", "news", "incident", "links"}` to `url`; `value_of` makes the JSON value of an incident.

    Every request has an `Idempotency-Key`, equal when the same is sent again after an attempt of unknown outcome.
    """

    url: str
    value_of: Callable[[Incident], Mapping[str, Any]]
    token: str = ""

    def __repr__(self) -> str:
        return f"WebhookReceiver({self.lane})"  # both the address and the token may be secret

    @property
    def edits(self) -> bool:
        """False: whoever listens gets what is news, not every count."""
        return False

    @property
    def lane(self) -> str:
        """The host."""
        return f"webhook:{urlsplit(self.url).hostname}"

    def deliver(self, notification: Notification) -> Receipt:
        """Post it. 2xx is delivered; 408, 425, 429 and 5xx are tried again later; everything else is a refusal."""
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            with opener.open(self._request(notification), timeout=TIMEOUT_S):
                return Receipt(State.DELIVERED)
        except HTTPError as error:
            with error:
                return _refused(error)
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, URLError) else error
            sure = isinstance(cause, ConnectionRefusedError)
            return Receipt(State.RETRY_LATER, f"the webhook cannot be reached ({type(cause).__name__})", unsure=not sure)

    def _request(self, notification: Notification) -> urllib.request.Request:
        incident, reason = notification.incident, notification.reason.value
        document = {"schema": SCHEMA, "reason": reason, "news": notification.news, "incident": self.value_of(incident)}
        document["links"] = {link.kind: link.url for link in notification.links}
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": "tocsin",
            "Idempotency-Key": f"{incident.id}/{incident.revision}/{reason}",
        }
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        body = json.dumps(document, ensure_ascii=False).encode()
        return urllib.request.Request(self.url, body, headers, method="POST")  # noqa: S310 - the scheme is checked in open_receiver


def open_receiver(url: str, value_of: Callable[[Incident], Mapping[str, Any]], token: str = "") -> WebhookReceiver:
    """Return the receiver behind `url`.

    Raises UsageError when it is no http address, or when a token would travel unprotected.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError("url of a webhook: only http and https addresses can be posted to")
    if token and not may_carry_secrets(url):
        raise UsageError("url of a webhook: a token is sent to https addresses and to this machine only")
    return WebhookReceiver(url, value_of, token)


def _refused(error: HTTPError) -> Receipt:
    why = f"the webhook answers with status {error.code}"
    if error.code not in _LATER and error.code < 500:
        return Receipt(State.REJECTED, why)
    after = error.headers.get("Retry-After", "")
    return Receipt(State.RETRY_LATER, why, after_s=float(after) if after.isdigit() else None, unsure=error.code >= 500)
