"""Incidents and their changes as documents of the Elastic Common Schema. Pure.

Source of the field names: ECS field reference (`event`, `rule`, `host`, `service`, `container`, `orchestrator`); Metricbeat's
Kafka module (`kafka.broker.id`, `kafka.topic.name`, `kafka.partition.id`, `kafka.consumergroup.id`). Fields without a name in
ECS are under `tocsin.incident`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.model.incidents import Evidence, Incident, RenderedStep
from engine.model.links import Link
from engine.model.notifications import IncidentChange
from engine.model.rules import SEVERITIES

ECS_VERSION = "8.17.0"
INCIDENTS, CHANGES = "tocsin.incidents", "tocsin.incident_changes"  # `event.dataset` of the documents
MOST_SYMPTOMS = 200  # in a document; `symptom_count` has the number of all
# label -> its field
FIELDS = {
    "cluster": ("kafka", "cluster", "name"),
    "broker": ("kafka", "broker", "id"),
    "topic": ("kafka", "topic", "name"),
    "partition": ("kafka", "partition", "id"),
    "group": ("kafka", "consumergroup", "id"),
    "connector": ("kafka", "connect", "connector"),
    "task": ("kafka", "connect", "task"),
    "worker": ("kafka", "connect", "worker"),
    "host": ("host", "name"),
    "service": ("service", "name"),
    "container": ("container", "name"),
    "namespace": ("orchestrator", "namespace"),
    "pod": ("orchestrator", "resource", "name"),
}
_ENDED = frozenset(("resolved", "retracted", "merged"))


def incident_document(incident: Incident, links: Iterable[Link], now: datetime) -> dict[str, Any]:
    """Return the document of an incident. `now`: the time of writing, and the timestamp of an incident without times."""
    document = _common(incident, links, now)
    document["@timestamp"] = _instant(incident.opened_at or incident.first_seen or now)
    document["event"] |= _extent(incident)
    document["tocsin"]["incident"] |= {
        "cause": incident.cause,
        "impact": incident.impact,
        "fix": [_step(step) for step in incident.fix],
        "verify": incident.verify,
        "evidence": [_evidence(event) for event in incident.evidence],
        "symptoms": [
            {"rule": symptom.rule, "title": symptom.title, "count": symptom.count}
            for symptom in incident.symptoms[:MOST_SYMPTOMS]
        ],
        "symptom_count": len(incident.symptoms),
        "captures": {name: str(value) for name, value in incident.captures.items()},
        "also_possible": list(incident.also_possible),
        "next_checks": list(incident.next_checks),
    }
    return document


def change_document(change: IncidentChange, links: Iterable[Link], now: datetime) -> dict[str, Any]:
    """Return the document of one change: the incident from then on, without evidence."""
    incident = change.incident
    document = _common(incident, links, now)
    document["@timestamp"] = _instant(_turned_at(incident) or now)
    document["message"] = f"{incident.title}: {change.news}" if change.news else incident.title
    document["event"] |= {"action": change.reason.value, "dataset": CHANGES}
    return document


def incident_id(incident: Incident) -> str:
    """Return the `_id` of an incident's document."""
    return incident.id


def change_id(change: IncidentChange) -> str:
    """Return the `_id` of a change's document: the same for the same change, however often it is written."""
    return f"{change.incident.id}-{change.incident.edition}"


def _common(incident: Incident, links: Iterable[Link], now: datetime) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "ecs": {"version": ECS_VERSION},
        "message": incident.title,
        "event": {
            "id": incident.id,
            "kind": "alert",
            "provider": "tocsin",
            "module": "tocsin",
            "dataset": INCIDENTS,
            "action": incident.status,
            "type": ["end"] if incident.status in _ENDED else ["start"],
            "severity": SEVERITIES.index(incident.severity) + 1 if incident.severity in SEVERITIES else 0,
            "sequence": incident.revision,
            "reason": incident.why,
            "ingested": _instant(now),
        },
        "rule": {
            "id": incident.rule,
            "name": incident.title,
            "category": incident.component,
            "ruleset": "tocsin",
            "description": incident.cause,
            "reference": next(iter(incident.references), ""),
        },
        "labels": {_flat(name): value for name, value in incident.labels.items() if _flat(name)},
        "tags": ["tocsin"],
        "tocsin": {
            "incident": {
                "id": incident.id,
                "revision": incident.revision,
                "status": incident.status,
                "is_open": incident.status not in _ENDED,
                "severity": incident.severity,
                "title": incident.title,
                "component": incident.component,
                "scope": incident.key[0],
                "count": incident.count,
                "stage": incident.stage,
                "merged_into": incident.merged_into or "",
                "links": {link.kind: link.url for link in links},
            }
        },
    }
    for label, path in FIELDS.items():
        if value := incident.labels.get(label):
            _put(fields, path, value)
    if page := fields["tocsin"]["incident"]["links"].get("incident"):
        fields["event"]["url"] = page
    return _without_empty(fields)


def _extent(incident: Incident) -> dict[str, Any]:
    """Return the start and end of an incident, and of a resolved one the duration in nanoseconds, as in ECS."""
    start, end = incident.first_seen, incident.resolved_at
    extent: dict[str, Any] = {}
    if start is not None:
        extent["start"] = _instant(start)
    if incident.last_seen is not None:
        extent["end"] = _instant(end or incident.last_seen)
    if incident.status == "resolved" and start is not None and end is not None:
        extent["duration"] = max(0, (end - start) // timedelta(microseconds=1) * 1000)
    return extent


def _turned_at(incident: Incident) -> datetime | None:
    if incident.revision == 1 and incident.opened_at:
        return incident.opened_at
    return incident.resolved_at if incident.status == "resolved" else incident.last_seen


def _evidence(event: Evidence) -> Mapping[str, Any]:
    fields = {"source": event.source_id, "line": event.number, "at": _instant(event.at), "text": event.text}
    return _without_empty({**fields, "origin": event.origin})


def _step(step: RenderedStep) -> str:
    """Return a step as text: what to do, then settings, files and command."""
    files = [f"{path}:\n{content}" for path, content in step.file.items()]
    return "\n".join(part for part in (step.do, *step.assignments, *files, step.run) if part)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _flat(name: str) -> str:
    """Return the name of a label as a field name: a dot would make it an object."""
    return name.replace(".", "_").strip()


def _put(fields: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    *parents, last = path
    for name in parents:
        fields = fields.setdefault(name, {})
    fields[last] = value


def _without_empty(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document without empty texts, lists and maps."""
    parts = {name: _without_empty(part) if isinstance(part, dict) else part for name, part in document.items()}
    return {name: part for name, part in parts.items() if part not in ("", [], {}, None)}
