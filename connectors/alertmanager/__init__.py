"""Prometheus Alertmanager as a receiver, by its API v2: an incident is an alert, for those who route, group and silence there.

Alertmanager forgets an alert at its `endsAt`. So that of an open incident lies `resolve_timeout` ahead, and the alert is sent
again before (see ForgetfulReceiver). Labels are the identity of an alert, so they stay as they were first sent until the rule
or the severity changes; then the alert with the earlier labels ends.

Source: Alertmanager's OpenAPI description (postAlerts: 200, 400, 500) and `types.Alert.Merge`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import UsageError
from engine.model.addresses import is_web_address, may_carry_secrets
from engine.model.answers import iso
from engine.model.incidents import Incident
from engine.model.inspections import Inspection
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.outlines import fitting, headline, outline
from engine.model.visible import visible
from engine.posting import inspected, is_page, json_request, posted

__all__ = ["RESOLVE_TIMEOUT_S", "AlertmanagerReceiver", "open_receiver"]

RESOLVE_TIMEOUT_S = 900.0
TEST_S = 60.0  # how long the alert of a test message is active
_REFRESHES = 3  # within resolve_timeout: two of them may fail
_MOST_CHARACTERS = 8_000  # of all annotations
_LABELS = "labels"  # the mark: the labels that the alert was sent with, as JSON
_STATES = frozenset(("open", "acknowledged"))

AlertLabels = dict[str, str]


class AlertmanagerReceiver(Struct, frozen=True):
    """The Alertmanager at `url`. `authorization` is the header of that name, empty for none."""

    url: str
    authorization: str = ""
    resolve_timeout_s: float = RESOLVE_TIMEOUT_S
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    edits: ClassVar[bool] = False  # new counts and evidence are sent with the next refresh
    records: ClassVar[bool] = False  # routes decide what it is notified of
    gathers: ClassVar[bool] = False  # Alertmanager groups by itself
    rate_limit_key: ClassVar[str] = ""  # Alertmanager has no limit

    def __repr__(self) -> str:
        return "AlertmanagerReceiver()"  # the address and the header may both be secret

    @property
    def refresh_s(self) -> float:
        """A third of `resolve_timeout`."""
        return self.resolve_timeout_s / _REFRESHES

    def deliver(self, notification: Notification) -> Receipt:
        """Send the alert of an incident, and the end of the one with its earlier labels, if these have changed."""
        incident, earlier = notification.incident, _earlier_labels(notification.marks)
        labels = earlier if earlier is not None and not _is_another(earlier, incident) else _labels(incident)
        alerts = [self._alert(notification, labels)]
        if earlier is not None and earlier != labels:
            alerts.insert(0, self._alert(notification, earlier, is_ended=True))
        receipt = self._post(alerts)
        return replace(receipt, marks={_LABELS: json.dumps(labels)}) if receipt.state is DeliveryState.DELIVERED else receipt

    def inspect(self) -> list[Inspection]:
        """Try whether the server is reached; nothing is posted."""
        return [inspected(self.url, "Alertmanager")]

    def refresh(self, notifications: Sequence[Notification]) -> Receipt:
        """Send the alerts of `notifications` again, with the labels that they were sent with, in one request."""
        labels = [_earlier_labels(notification.marks) or _labels(notification.incident) for notification in notifications]
        return self._post([self._alert(notification, own) for notification, own in zip(notifications, labels, strict=True)])

    def _post(self, alerts: Sequence[Mapping[str, Any]]) -> Receipt:
        headers = {"Authorization": self.authorization} if self.authorization else {}
        request = json_request(f"{self.url}/api/v2/alerts", alerts, headers)
        return posted(request, "Alertmanager", accepts=lambda answer: not is_page(answer))

    def _alert(self, notification: Notification, labels: AlertLabels, *, is_ended: bool = False) -> Mapping[str, Any]:
        incident, now = notification.incident, self.now()
        starts_at = incident.first_seen or now
        lasting_s = TEST_S if notification.reason is Reason.TEST else self.resolve_timeout_s
        ends_at = max(now, starts_at) + timedelta(seconds=lasting_s)
        if is_ended or incident.status not in _STATES:
            starts_at = min(starts_at, now)
            ends_at = max(starts_at, min(now, incident.resolved_at or now))
        alert = {
            "labels": labels,
            "annotations": _annotations(notification),
            "startsAt": iso(starts_at),
            "endsAt": iso(ends_at),
        }
        links = {link.kind: link.url for link in notification.links}
        page = links.get("incident") or links.get("incidents") or links.get("audit")
        return {**alert, "generatorURL": page} if page else alert


def open_receiver(url: str, authorization: str = "", resolve_timeout_s: float = RESOLVE_TIMEOUT_S) -> AlertmanagerReceiver:
    """Return the receiver of the Alertmanager at `url`.

    Raises UsageError when it is not an http or https address, or when the header would be sent unencrypted.
    """
    if not is_web_address(url):
        raise UsageError("url of an alertmanager: must be an http or https address")
    if authorization and not may_carry_secrets(url):
        raise UsageError("url of an alertmanager: a token or password is sent to https addresses and to this machine only")
    return AlertmanagerReceiver(url.rstrip("/"), authorization, resolve_timeout_s)


def _labels(incident: Incident) -> AlertLabels:
    own = {
        "alertname": incident.rule,
        "severity": incident.severity,
        "component": incident.component,
        "incident": incident.id,
        "cluster": incident.labels.get("cluster", "default"),
    }
    others = {_label_name(name): value for name, value in incident.labels.items()}
    return {name: visible(value) for name, value in {**others, **own}.items() if value}


def _label_name(name: str) -> str:
    """Return a name that any version of Alertmanager accepts (0.27 and later take others as well)."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{plain}" if plain[:1].isdigit() or not plain else plain


def _is_another(labels: AlertLabels, incident: Incident) -> bool:
    return incident.status in _STATES and (labels.get("alertname"), labels.get("severity")) != (
        incident.rule,
        incident.severity,
    )


def _earlier_labels(marks: Mapping[str, str]) -> AlertLabels | None:
    return json.loads(marks[_LABELS]) if _LABELS in marks else None


def _annotations(notification: Notification) -> Mapping[str, str]:
    """Return the passages of an incident by name; steps of the fix and lines of proof are joined."""
    annotations = {"summary": headline(notification.incident, notification.words)}
    for passage in fitting(outline(notification), _MOST_CHARACTERS, notification.words):
        name = {"Cause": "description"}.get(passage.name, passage.name.split(" ")[0].lower())
        content = "\n".join(part for part in (passage.text, passage.code) if part)
        annotations[name] = f"{annotations[name]}\n{content}" if name in annotations else content
    logs = {link.kind: link.url for link in notification.links if link.kind == "kibana"}
    return {**annotations, **({"logs": logs["kibana"]} if logs else {})}
