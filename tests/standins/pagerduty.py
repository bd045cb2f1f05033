"""A stand-in for PagerDuty's Events API v2: it refuses what PagerDuty refuses, and keeps the state of each alert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.standins.http import HttpStandIn, StandInReply, TakenRequest

ROUTING_KEY = "R0secretKEY0of0the0stand0in00032"
_MOST_BYTES = 512 * 1024
_SEVERITIES = ("critical", "error", "warning", "info")


class PagerDutyStandIn(HttpStandIn):
    """`alerts`: the state of each alert by its key, `triggered` or `acknowledged`; `events`: every accepted event."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.alerts: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []

    def call_of(self, path: str) -> str:
        """Return `enqueue`, or what is at another path."""
        return "enqueue" if path == "/v2/enqueue" else path

    def take(self, request: TakenRequest, behaviour: str) -> StandInReply:
        """Judge and keep one event."""
        if request.call != "enqueue" or behaviour not in ("accept", "drop", "hold"):
            return StandInReply(404, behaviour)
        errors = list(_errors(request.value))
        if errors or request.size > _MOST_BYTES:
            answer = {"status": "invalid event", "message": "Event object is invalid", "errors": errors}
            return StandInReply(413 if request.size > _MOST_BYTES else 400, answer)
        event, key = request.value, request.value["dedup_key"]
        self.events.append(event)
        if event["event_action"] == "trigger":
            self.alerts.setdefault(key, "triggered")
        elif event["event_action"] == "resolve":
            self.alerts.pop(key, None)
        elif key in self.alerts:
            self.alerts[key] = "acknowledged"
        return StandInReply(202, {"status": "success", "message": "Event processed", "dedup_key": key})


def _errors(event: dict[str, Any]) -> Iterator[str]:
    if len(event.get("routing_key", "")) != 32:
        yield "Length of 'routing_key' is incorrect (should be 32 characters)"
    if event.get("event_action") not in ("trigger", "acknowledge", "resolve"):
        yield "'event_action' is unknown"
    if not 0 < len(event.get("dedup_key", "")) <= 255:
        yield "'dedup_key' is missing or longer than 255 characters"
    if event.get("event_action") == "trigger":
        payload = event.get("payload", {})
        if not 0 < len(payload.get("summary", "")) <= 1024:
            yield "'payload.summary' is missing, or longer than 1024 characters"
        if not payload.get("source"):
            yield "'payload.source' is missing"
        if payload.get("severity") not in _SEVERITIES:
            yield "'payload.severity' is invalid (must be one of the following: 'critical', 'warning', 'error' or 'info')"
        if any(not link.get("href", "").startswith("https://") for link in event.get("links", ())):
            yield "'links.href' must be an address"
