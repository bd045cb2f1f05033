from __future__ import annotations

import json

from engine.cli.answer import document
from engine.cli.triage import Triage
from tests.unit.cli.incidents import TOO_LARGE
from tests.unit.cli.test_overview import FULL, STATS

INCIDENT_KEYS = (
    "id rule title severity status component labels first_seen last_seen resolved_at count cause impact fix verify evidence "
    "symptoms captures also_possible next_checks merged_into"
)


def test_the_document_has_every_promised_key() -> None:
    answer = json.loads(json.dumps(document(FULL)))
    lists = {"incidents", "pending", "minor", "unknown", "blind", "quarantined", "notes"}
    assert set(answer) == {"schema", "stats", "coverage", *lists}
    assert answer["schema"] == 1
    assert set(answer["stats"]) == {"lines", "events", "matches", "seconds"}
    assert set(answer["unknown"][0]) == {"template", "count", "level", "sample", "draft"}
    assert set(answer["blind"][0]) == {"scope", "what", "why"}
    assert answer["notes"] == ["empty.log: is empty"]
    for incident in (*answer["incidents"], *answer["pending"], *answer["minor"]):
        assert set(incident) >= set(INCIDENT_KEYS.split())


def test_an_incident_carries_its_numbers_and_its_proof() -> None:
    (told,) = document(Triage((TOO_LARGE,), (), (), (), (), (), STATS))["incidents"]
    assert told["first_seen"] == "2023-02-03T02:05:02.285Z"
    assert told["resolved_at"] is None
    assert told["captures"] == {"size": 1125872, "limit": 1048576}
    assert set(told["fix"][0]) >= {"do", "where", "set", "also", "run", "changes_state"}
    assert told["fix"][0]["set"] == {"producer.max.request.size": "2097152"}
    assert told["fix"][1]["changes_state"] is True
    assert (told["evidence"][0]["source"], told["evidence"][0]["line"]) == ("connect.log#kafka-connect-2", 12)
    assert told["symptoms"] == [
        {
            "rule": "connect-task-killed",
            "title": "A Connect task was killed",
            "count": 1,
            "labels": {"cluster": "default", "connector": "cdc-source"},
        }
    ]
