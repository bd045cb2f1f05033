"""An incident's page as a JSON value: that of a scan, with the data that only the store has. Keys may be added, never
changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.model.answers import act_value, incident_value, iso, lines_value
from engine.model.considered import CONSIDERED_WORDS, ConsideredRule
from engine.model.notifications import NotificationLog, ReceiverStatus
from engine.model.past import PastIncident
from engine.web.history import History
from engine.web.timeline import Change


def history_value(history: History) -> Mapping[str, Any]:
    """Return the last revision of the incident with its links, its deliveries by receiver, its changes (oldest first), the
    rules that were considered, and the earlier incidents of its rule."""
    return {
        **incident_value(history.incident),
        "links": {link.kind: link.url for link in history.links},
        "query": history.query,
        "lines": lines_value(history.incident, history.lines),
        "deliveries": [_delivery(status) for status in history.standings],
        "timeline": [_change(change) for change in history.changes],
        "considered": [_considered(rule) for rule in history.considered],
        "past": {"total": history.past.total, "incidents": [_past(earlier) for earlier in history.past.incidents]},
    }


def _considered(rule: ConsideredRule) -> Mapping[str, Any]:
    return {
        "rule": rule.rule,
        "reason": rule.reason,
        "why": CONSIDERED_WORDS[rule.reason],
        "count": rule.count,
        "labels": dict(rule.labels),
        "first_seen": iso(rule.first_seen),
        "incident": rule.incident or None,
        "title": rule.title,
    }


def _past(past: PastIncident) -> Mapping[str, Any]:
    incident = past.incident
    return {
        "id": incident.id,
        "near": past.near,
        "title": incident.title,
        "status": incident.status,
        "why": incident.why,
        "labels": dict(incident.labels),
        "first_seen": iso(incident.first_seen),
        "last_seen": iso(incident.last_seen),
        "resolved_at": iso(incident.resolved_at),
        "count": incident.count,
        "remarks": [act_value(act) for act in past.remarks],
    }


def _delivery(status: ReceiverStatus) -> Mapping[str, Any]:
    entry, log = status.entry, status.log
    return {
        "receiver": status.receiver,
        "state": entry.state.value if entry else None,
        "reason": entry.reason.value if entry else None,
        "why": entry.why if entry else "",
        "due_at": iso(entry.due_at) if entry else None,
        "attempts": entry.attempts if entry else 0,
        "delivered": status.delivered,
        "told": _log_value(log) if log else None,
    }


def _log_value(log: NotificationLog) -> Mapping[str, Any]:
    return {"at": iso(log.at), "status": log.status, "severity": log.severity, "revision": log.revision}


def _change(change: Change) -> Mapping[str, Any]:
    value = {"at": iso(change.at), "by": change.by, "revision": change.revision, "what": change.sentence}
    return {**value, "via": change.via} if change.via else value
