"""Kafka Connect status documents, in every form they reach a log or a chat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.parse.status import failed_parts
from tests.unit.parse.reading import event, events

LIMIT = "org.apache.kafka.common.errors.RecordTooLargeException"
OUTER = "org.apache.kafka.connect.errors.ConnectException"
TRACE = f"{OUTER}: Unrecoverable exception\n\tat a.B.c(B.java:1)\nCaused by: {LIMIT}: The message is 1125872 bytes\n"
STATUS: dict[str, Any] = {
    "name": "cdc-source",
    "connector": {"state": "RUNNING", "worker_id": "kafka-connect-2:8083"},
    "tasks": [
        {"id": 0, "state": "FAILED", "worker_id": "kafka-connect-2:8083", "trace": TRACE},
        {"id": 1, "state": "RUNNING", "worker_id": "kafka-connect-2:8083"},
    ],
    "type": "source",
}
ALERT = {"state": "FAILED", "trace": TRACE, "worker_id": "kafka-connect-2:8083", "generation": 79}
LOG = "[2023-02-03 02:05:02,285] INFO started (a.B)"


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_one_event_for_each_failed_task(indent: int | None) -> None:
    found = event(json.dumps(STATUS, indent=indent))
    assert found.text == TRACE.rstrip()
    assert found.exception == (OUTER, LIMIT)
    assert {name: found.labels[name] for name in ("connector", "task", "worker")} == {
        "connector": "cdc-source",
        "task": "0",
        "worker": "kafka-connect-2",
    }
    assert found.timestamp is None


def test_a_document_below_a_log_line_is_not_its_continuation() -> None:
    log, found = events(f"{LOG}\n{json.dumps(STATUS)}\n")
    assert log.text == LOG
    assert found.labels["connector"] == "cdc-source"


def test_a_failed_connector_has_no_task() -> None:
    status = {"name": "c", "connector": {"state": "FAILED", "worker_id": "10.0.0.1:8083", "trace": TRACE}, "tasks": []}
    (part,) = failed_parts(json.dumps(status))
    assert part.labels == {"connector": "c", "worker": "10.0.0.1:8083"}


def test_two_failed_tasks_are_two_events_with_ids_of_their_own() -> None:
    status = {**STATUS, "tasks": [{**ALERT, "id": n} for n in (0, 1)]}
    first, second = events(json.dumps(status))
    assert (first.labels["task"], second.labels["task"]) == ("0", "1")
    assert first.event_id != second.event_id


def test_many_connectors_by_name() -> None:
    parts = failed_parts(
        json.dumps(
            {
                "cdc-source": {"status": STATUS},
                "other": {"status": {"name": "o", "connector": {"state": "RUNNING"}, "tasks": []}},
            }
        )
    )
    assert [part.labels["connector"] for part in parts] == ["cdc-source"]


@pytest.mark.parametrize(
    "text", [json.dumps(ALERT), json.dumps(ALERT, indent=2), json.dumps(ALERT).replace("\\n", "\n").replace("\\t", "    ")]
)
def test_an_alert_is_one_event_with_its_cause_and_worker(text: str) -> None:
    found = event(text)
    assert "Caused by: " in found.text
    assert '"kafka-connect-2:8083"' in found.text
    assert found.exception == (OUTER, LIMIT)
    assert found.labels["worker"] == "kafka-connect-2"


def test_an_alert_with_escaped_line_ends_reads_as_lines() -> None:
    assert f"\nCaused by: {LIMIT}: The message is" in event(json.dumps(ALERT)).text


def test_a_status_without_failures_is_text() -> None:
    healthy = {**STATUS, "tasks": STATUS["tasks"][1:]}
    assert event(json.dumps(healthy)).text == json.dumps(healthy)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"trace":"FAILED"}',
        '{"trace": 1, "state": "FAILED"}',
        '[{"trace":"x","state":"FAILED"}]',
        '{"a":{"status":3},"trace":"","b":"FAILED"}',
        '{"connector":{"state":"FAILED","trace":[]},"tasks":7}',
        '{"connector":{"state":"FAILED"},"tasks":[1,{"trace":null}]}',
    ],
)
def test_documents_of_other_shapes_have_no_failed_parts(text: str) -> None:
    assert failed_parts(text) == ()


def test_a_deep_document_is_refused_not_followed() -> None:
    assert failed_parts('{"trace":' * 100_000 + '"FAILED"') == ()


def test_a_status_that_was_cut_off_still_says_whose_it_is() -> None:
    found = event(json.dumps(STATUS)[:260])
    assert (found.labels["connector"], found.labels["task"]) == ("cdc-source", "0")
    assert found.exception[:1] == (OUTER,)


def test_the_quotes_of_an_escaped_trace_become_bare() -> None:
    trace = 'a.BException: needs "schema"\n\tat a.B.c(B.java:1)\n'
    found = event(json.dumps({**STATUS, "tasks": [{**ALERT, "trace": trace}]})[:-9])
    assert 'a.BException: needs "schema"\n\tat a.B.c(B.java:1)' in found.text
    assert found.labels["connector"] == "cdc-source"
