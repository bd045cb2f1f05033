"""An incident's page as a JSON value: that of a scan, and what only the store knows. Keys may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.answers import incident_value, iso
from engine.model.notifications import NotificationLog, ReceiverStatus
from engine.web.history import History
from engine.web.timeline import Change


def history_value(history: History) -> Mapping[str, Any]:
    """Return the incident as it is now, where it leads on to, who was told of it and how it went."""
    return {
        **incident_value(history.incident),
        "links": {link.kind: link.url for link in history.links},
        "deliveries": [_delivery(standing) for standing in history.standings],
        "timeline": [_change(change) for change in history.changes],
    }


def _delivery(standing: ReceiverStatus) -> Mapping[str, Any]:
    entry, told = standing.entry, standing.told
    return {
        "receiver": standing.receiver,
        "state": entry.state.value if entry else None,
        "reason": entry.reason.value if entry else None,
        "why": entry.why if entry else "",
        "due_at": iso(entry.due_at) if entry else None,
        "attempts": entry.attempts if entry else 0,
        "delivered": standing.delivered,
        "told": _told(told) if told else None,
    }


def _told(told: NotificationLog) -> Mapping[str, Any]:
    return {"at": iso(told.at), "status": told.status, "severity": told.severity, "revision": told.revision}


def _change(change: Change) -> Mapping[str, Any]:
    return {"at": iso(change.at), "by": change.by, "revision": change.revision, "what": change.sentence}
