"""An incident as a JSON value, the same in a scan and on the pages. Keys may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.model.incidents import Incident, RenderedStep, Symptom


def incident_value(incident: Incident) -> Mapping[str, Any]:
    """Return the JSON value of one incident; times are ISO 8601 in UTC with Z, or null where the lines have no stamps."""
    return {
        "id": incident.id,
        "rule": incident.rule,
        "title": incident.title,
        "severity": incident.severity,
        "status": incident.status,
        "component": incident.component,
        "labels": dict(incident.labels),
        "first_seen": iso(incident.first_seen),
        "last_seen": iso(incident.last_seen),
        "resolved_at": iso(incident.resolved_at),
        "count": incident.count,
        "cause": incident.cause,
        "impact": incident.impact,
        "fix": [_step(step) for step in incident.fix],
        "verify": incident.verify,
        "evidence": [{"source": e.source_id, "line": e.number, "text": e.text} for e in incident.evidence],
        "symptoms": [_symptom(symptom) for symptom in incident.symptoms],
        "captures": dict(incident.captures),
        "also_possible": list(incident.also_possible),
        "next_checks": list(incident.next_checks),
        "references": list(incident.references),
        "stage": incident.stage,
        "why": incident.why,
        "merged_into": incident.merged_into,
    }


def iso(at: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the millisecond where it has one, ending in Z."""
    if at is None:
        return None
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _step(step: RenderedStep) -> Mapping[str, Any]:
    return {
        "do": step.do,
        "where": step.where,
        "set": dict(step.set),
        "also": dict(step.also),
        "file": dict(step.file),
        "run": step.run,
        "changes_state": step.changes_state,
    }


def _symptom(symptom: Symptom) -> Mapping[str, Any]:
    return {"rule": symptom.rule, "title": symptom.title, "count": symptom.count, "labels": dict(symptom.labels)}
