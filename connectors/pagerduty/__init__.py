"""PagerDuty as a receiver, by its Events API v2: an incident is an alert, which is triggered, acknowledged and resolved.

Source of limits and statuses: PagerDuty developer documentation, Events API v2 (send an event; 120 events a minute and
integration key; an event has at most 512 kB). The API is asynchronous: it accepts events of integration keys that do not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import UsageError
from engine.exchange import HttpAnswer
from engine.model.addresses import may_carry_secrets
from engine.model.answers import iso
from engine.model.inspections import Inspection
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.outlines import Passage, fitting, headline, outline
from engine.model.phrases import named
from engine.model.visible import visible
from engine.posting import inspected, json_request, posted

__all__ = ["PagerDutyReceiver", "open_receiver"]

API = "https://events.pagerduty.com/"
_ENQUEUE = "v2/enqueue"
_SEVERITIES = {"critical": "critical", "high": "error", "medium": "warning", "low": "warning", "info": "info"}
_MOST_SUMMARY, _MOST_DETAILS, _MOST_KEY = 1_024, 100_000, 255
_TRIGGERED = "triggered"  # the mark of an alert that exists


class PagerDutyReceiver(Struct, frozen=True):
    """The service of the integration key `routing_key`. The key of an alert is the incident's id.

    An incident that is over, or was merged into another, resolves its alert; one that is acknowledged acknowledges it.
    """

    routing_key: str
    base_url: str = API
    edits: ClassVar[bool] = False  # an alert keeps what it was triggered with
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = True  # a storm is one page, which is resolved when all of it is over

    def __repr__(self) -> str:
        return f"PagerDutyReceiver({self.base_url})"  # the integration key is a secret

    @property
    def rate_limit_key(self) -> str:
        """The integration key, as a digest: PagerDuty limits the events of each."""
        return f"pagerduty:{sha256(self.routing_key.encode()).hexdigest()[:12]}"

    def inspect(self) -> list[Inspection]:
        """Try whether the server is reached; nothing is posted."""
        return [inspected(self.base_url, "PagerDuty")]

    def deliver(self, notification: Notification) -> Receipt:
        """Send the events that bring the alert to the state of the incident. An event that is repeated changes nothing."""
        marks, sent = dict(notification.marks), 0
        receipt = Receipt(DeliveryState.DELIVERED)
        for action in _actions(notification, _TRIGGERED in marks):
            request = json_request(f"{self.base_url}{_ENQUEUE}", _event(notification, action, self.routing_key))
            receipt = posted(request, "PagerDuty", accepts=_is_accepted)
            if receipt.state is not DeliveryState.DELIVERED:
                break
            sent += 1
            marks = {_TRIGGERED: "yes"} if action != "resolve" else {}
        return replace(receipt, marks=marks, messages=sent)


def open_receiver(routing_key: str, base_url: str = API) -> PagerDutyReceiver:
    """Return the receiver of `routing_key`. Raises UsageError when the key would be sent unencrypted to `base_url`."""
    if not may_carry_secrets(base_url):
        raise UsageError(f"{base_url}: a routing key is sent to https addresses and to this machine only")
    return PagerDutyReceiver(routing_key, f"{base_url.rstrip('/')}/")


def _actions(notification: Notification, is_triggered: bool) -> tuple[str, ...]:
    """Return the events that bring an alert to the state of its incident. One that was not triggered cannot be acknowledged.

    A test leaves no alert behind, and a digest in which nothing is open (it has severity info) pages nobody.
    """
    status, reason = notification.incident.status, notification.reason
    if reason is Reason.TEST:
        return ("trigger", "resolve")
    if reason in (Reason.BACKFILL, Reason.DIGEST) and notification.incident.severity == "info":
        return ()
    if status == "open":
        return ("trigger",)
    if status == "acknowledged":
        return ("acknowledge",) if is_triggered else ("trigger", "acknowledge")
    return ("resolve",)


def _event(notification: Notification, action: str, routing_key: str) -> Mapping[str, Any]:
    incident = notification.incident
    event = {"routing_key": routing_key, "event_action": action, "dedup_key": incident.id[:_MOST_KEY]}
    if action != "trigger":
        return event
    payload: dict[str, Any] = {
        "summary": headline(incident, notification.words)[:_MOST_SUMMARY],
        "source": visible(named(incident.labels)) or incident.component,
        "severity": _SEVERITIES.get(incident.severity, "warning"),
        "component": incident.component,
        "group": visible(incident.labels.get("cluster", "default")),
        "class": incident.rule,
        "custom_details": _details(fitting(outline(notification), _MOST_DETAILS, notification.words)),
    }
    if incident.first_seen is not None:
        payload["timestamp"] = iso(incident.first_seen)
    links = [{"href": link.url, "text": notification.words(link.title)} for link in notification.links]
    page = {"client_url": links[0]["href"]} if links else {}
    return {**event, "payload": payload, "links": links, "client": "tocsin", **page}


def _details(passages: Iterable[Passage]) -> Mapping[str, str]:
    details: dict[str, str] = {}
    for passage in passages:
        content = "\n".join(part for part in (passage.text, passage.code) if part)
        details[passage.name] = f"{details[passage.name]}\n{content}" if passage.name in details else content
    return details


def _is_accepted(answer: HttpAnswer) -> bool:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("status") == "success"
