"""An incident as a JSON value, the same in a scan and on the pages. Keys may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.model.acts import Act, ActKind, Handling
from engine.model.incidents import Evidence, Incident, RenderedStep, Symptom
from engine.model.links import LineLinks


def incident_value(incident: Incident) -> Mapping[str, Any]:
    """Return the JSON value of one incident; times are ISO 8601 in UTC with Z, or null where the lines have no stamps. One that
    people acted on also has `owner` and `handling`."""
    return {**_value(incident), **({} if incident.handling is None else _handling(incident.handling))}


def act_value(act: Act) -> Mapping[str, Any]:
    """Return the JSON value of an act."""
    value = {"at": iso(act.at), "by": act.by, "via": act.via, "kind": act.kind.value, "text": act.text}
    if act.kind is ActKind.ASSIGN:
        return {**value, "assignee": act.assignee}
    if act.kind is ActKind.SILENCE:
        return {**value, "scope": act.scope.value, "until": iso(act.until), "silence": act.silence}
    return {**value, "silence": act.silence} if act.kind is ActKind.UNSILENCE else value


def _handling(handling: Handling) -> Mapping[str, Any]:
    state = {"state": handling.state, "by": handling.by, "at": iso(handling.at), "why": handling.why}
    return {"owner": handling.owner, "handling": {**state, "useful": handling.useful, "acts": handling.acts}}


def _value(incident: Incident) -> Mapping[str, Any]:
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
        "fix": [step_value(step) for step in incident.fix],
        "verify": incident.verify,
        "evidence": [_evidence(event) for event in incident.evidence],
        "symptoms": [_symptom(symptom) for symptom in incident.symptoms],
        "captures": dict(incident.captures),
        "also_possible": list(incident.also_possible),
        "next_checks": list(incident.next_checks),
        "references": list(incident.references),
        "stage": incident.stage,
        "why": incident.why,
        "merged_into": incident.merged_into,
    }


def lines_value(incident: Incident, lines: Mapping[str, LineLinks]) -> list[Mapping[str, Any]]:
    """Return, for each line of evidence in order, its links by kind and the query that finds its source."""
    line_links = [lines.get(event.event_id, LineLinks()) for event in incident.evidence]
    return [{"links": {link.kind: link.url for link in line.links}, "query": line.query} for line in line_links]


def iso(at: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the millisecond where it has one, ending in Z."""
    if at is None:
        return None
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _evidence(event: Evidence) -> Mapping[str, Any]:
    """Return a line; `origin` only where it came from a document (engine/model/origins)."""
    value = {"source": event.source_id, "line": event.number, "text": event.text}
    return {**value, "origin": event.origin} if event.origin else value


def step_value(step: RenderedStep) -> Mapping[str, Any]:
    """Return the JSON value of a step of a fix."""
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
