"""Incidents as documents: ECS where it has a name, nothing that is empty, no field that another has already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from connectors.elasticsearch.incidents.documents import MOST_SYMPTOMS, change_document, change_id, incident_document
from connectors.elasticsearch.incidents.indices import mappings
from engine.model.incidents import Symptom
from engine.model.links import Link
from engine.model.notifications import IncidentChange, Reason
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

NOW = datetime(2023, 2, 4, tzinfo=UTC)
LINKS = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://k/x"))


def test_an_open_incident() -> None:
    document = incident_document(TOO_LARGE, LINKS, NOW)
    assert document["@timestamp"] == "2023-02-03T02:05:02.285Z"
    assert document["event"] == {
        "id": "inc-0123456789",
        "kind": "alert",
        "provider": "tocsin",
        "module": "tocsin",
        "dataset": "tocsin.incidents",
        "action": "open",
        "type": ["start"],
        "severity": 5,
        "sequence": 2,
        "ingested": "2023-02-04T00:00:00.000Z",
        "url": "https://tocsin.example/incidents/inc-1",
        "start": "2023-02-03T02:05:02.285Z",
        "end": "2023-02-03T02:05:07.285Z",
    }
    assert document["kafka"] == {
        "cluster": {"name": "default"},
        "topic": {"name": "A.B.C"},
        "connect": {"connector": "cdc-source", "task": "0", "worker": "kafka-connect-2"},
    }
    assert document["rule"]["id"] == "connect-record-too-large-client"
    assert document["labels"]["topic"] == "A.B.C"
    assert document["tocsin"]["incident"]["is_open"] is True
    assert document["tocsin"]["incident"]["fix"][0].splitlines()[1] == "producer.max.request.size=2097152"
    assert document["tocsin"]["incident"]["links"] == {"incident": LINKS[0].url, "kibana": LINKS[1].url}


def test_only_what_is_resolved_has_a_duration() -> None:
    resolved = incident(status="resolved", resolved_at=AT + timedelta(minutes=2, microseconds=7))
    assert incident_document(resolved, (), NOW)["event"]["duration"] == 120_000_007_000
    assert "duration" not in incident_document(incident(status="retracted"), (), NOW)["event"]


def test_an_incident_without_times_is_dated_by_when_it_is_written() -> None:
    document = incident_document(incident(first_seen=None, last_seen=None, opened_at=None), (), NOW)
    assert document["@timestamp"] == "2023-02-04T00:00:00.000Z"
    assert "start" not in document["event"]


def test_labels_are_flat_and_a_storm_of_symptoms_is_counted() -> None:
    symptoms = tuple(Symptom(f"r{n}", "", 1, {}) for n in range(MOST_SYMPTOMS + 9))
    document = incident_document(incident(labels={"a.b": "1", "": "x"}, symptoms=symptoms), (), NOW)
    assert document["labels"] == {"a_b": "1"}
    told = document["tocsin"]["incident"]
    assert (len(told["symptoms"]), told["symptom_count"]) == (MOST_SYMPTOMS, MOST_SYMPTOMS + 9)


def test_a_change_is_what_the_incident_was_from_then_on() -> None:
    resolved = incident(revision=7, status="resolved", resolved_at=AT + timedelta(minutes=2))
    change = IncidentChange(resolved, Reason.RESOLVED, "resolved (quiet)")
    document = change_document(change, LINKS, NOW)
    assert change_id(change) == "inc-0123456789-7"
    assert document["@timestamp"] == "2023-02-03T02:07:02.285Z"
    assert document["message"].endswith(": resolved (quiet)")
    assert (document["event"]["action"], document["event"]["dataset"]) == ("resolved", "tocsin.incident_changes")
    assert "evidence" not in document["tocsin"]["incident"]


def test_every_field_is_mapped_or_known_not_to_be_searched() -> None:
    evidence = replace(TOO_LARGE.evidence[0], origin="elasticsearch:logs/1")
    whole = incident(evidence=(evidence,), stage="later", why="because", merged_into="inc-2")
    resolved = replace(whole, status="resolved", resolved_at=AT + timedelta(hours=1))
    labels = dict.fromkeys(("broker", "partition", "group", "host", "service", "container", "namespace", "pod"), "x")
    for document in (incident_document(replace(resolved, labels=labels), LINKS, NOW), incident_document(whole, LINKS, NOW)):
        assert sorted(set(fields(document)) - set(mapped(mappings()))) == []


def fields(document: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the names of all fields but those of labels and captures."""
    for name, value in document.items():
        if f"{path}{name}" in ("labels", "tocsin.incident.captures"):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Mapping):
                yield from fields(part, f"{path}{name}.")
            else:
                yield f"{path}{name}"


def mapped(mapping: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, value in mapping.get("properties", {}).items():
        yield f"{path}{name}"
        yield from mapped(value, f"{path}{name}.")
