"""A stand-in for the API v2 of Alertmanager: it checks labels and times as Alertmanager does, and merges alerts like it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tests.standins.http import HttpStandIn, StandInReply, TakenRequest

AlertIdentity = frozenset[tuple[str, str]]


class KeptAlert(Struct):
    """An alert: it is active until `ends_at`."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: datetime
    ends_at: datetime
    page: str


class AlertmanagerStandIn(HttpStandIn):
    """`alerts`: what was posted last under each set of labels."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.alerts: dict[AlertIdentity, KeptAlert] = {}
        self.headers: list[dict[str, str]] = []

    def active(self, now: datetime | None = None) -> list[dict[str, str]]:
        """Return the labels of the alerts that have not ended, in the order in which they were first posted."""
        return [alert.labels for alert in self.alerts.values() if alert.ends_at > (now or datetime.now(UTC))]

    def call_of(self, path: str) -> str:
        """Return `alerts`, or what is at another path."""
        return "alerts" if path == "/api/v2/alerts" else path

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Judge and keep the alerts of one request."""
        self.headers.append(request.headers)
        if request.call != "alerts" or behaviour not in ("accept", "drop", "hold"):
            return StandInReply(404, behaviour)
        errors = [error for alert in request.value for error in _errors(alert)]
        if errors:
            return StandInReply(400, "; ".join(errors))
        for alert in request.value:
            starts_at, ends_at = (datetime.fromisoformat(alert[key]) for key in ("startsAt", "endsAt"))
            kept = KeptAlert(alert["labels"], alert["annotations"], starts_at, ends_at, alert.get("generatorURL", ""))
            self.alerts[frozenset(alert["labels"].items())] = kept
        return StandInReply(200)


def _errors(alert: dict[str, Any]) -> Iterator[str]:
    for name, value in alert["labels"].items():
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or not value:
            yield f"invalid label set: {name!r}"
    if not alert["labels"]:
        yield "at least one label pair required"
    if datetime.fromisoformat(alert["startsAt"]) > datetime.fromisoformat(alert["endsAt"]):
        yield "start time must be before end time"
    if any(not isinstance(value, str) for value in alert["annotations"].values()):
        yield "invalid annotations"
