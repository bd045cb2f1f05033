"""A failed task, known from its status alone: the incident, the fix and the end are those that its log gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from connectors import connect
from engine.asking import stamped
from engine.cli.intake import Intake
from engine.model.incidents import Incident
from engine.pipeline import replay
from tests.rulepack.playing import plan
from tests.unit.connectors.answering import answering
from tests.unit.connectors.connect.test_rest import Cluster
from tests.unit.connectors.connect.test_statuses import part, status

BEGIN = datetime(2023, 2, 3, 2, 4, 32, tzinfo=UTC)
STORY = Path(__file__).parents[4] / "samples" / "1-silent-cdc-connector"
FAILED = json.loads((STORY / "rest-status.json").read_text(encoding="utf-8"))
RUNNING = status(FAILED["name"], part())


def asked(tmp_path: Path, *rounds: list[dict[str, Any]]) -> Path:
    """Ask a cluster whose connectors are `rounds`, one after the other, every 30 s; return the record."""
    record, cluster = tmp_path / "asked.log", Cluster()
    times = [BEGIN + timedelta(seconds=30 * number) for number in range(len(rounds) + 4)]
    with answering(cluster) as server:
        settings = {"connection": {"urls": [server.url]}, "folder": str(tmp_path / "answers"), "every_s": 30.0}
        source = connect.open_source({**settings, "record": str(record), "labels": {}, "final": True})
        source.wall = lambda: times.pop(0)
        source.latest(source.initial())
        assert source._rounds is not None
        for statuses in (*rounds, rounds[-1], rounds[-1], rounds[-1]):
            cluster.statuses = {status["name"]: status for status in statuses}
            source._rounds.ask(0)
    return record


def scanned(record: Path) -> list[Incident]:
    return list({incident.id: incident for incident in replay(Intake([str(record)], {}).lines(), plan())}.values())


def test_a_failed_task_is_the_incident_of_its_log_from_the_status_alone(tmp_path: Path) -> None:
    (incident,) = scanned(asked(tmp_path, [RUNNING], [FAILED]))
    assert (incident.rule, incident.severity, incident.status) == ("connect-record-too-large-client", "critical", "open")
    assert (incident.labels["connector"], incident.labels["task"]) == ("cdc-source", "0")
    (pasted,) = scanned(STORY / "rest-status.json")
    assert (incident.title, incident.cause, incident.fix[:2]) == (pasted.title, pasted.cause, pasted.fix[:2])
    (limit,) = [step for step in incident.fix if "max.message.bytes" in step.run]
    assert " --entity-name ${topic:?} " in limit.run  # no line names it
    assert "it may be one of 2: heartbeats, shop.orders)" in limit.do
    assert incident.opened_at == BEGIN + timedelta(seconds=60)


def test_a_task_that_runs_again_ends_it(tmp_path: Path) -> None:
    (incident,) = scanned(asked(tmp_path, [RUNNING], [FAILED], [FAILED], [RUNNING]))
    assert (incident.status, incident.resolved_at) == ("resolved", BEGIN + timedelta(seconds=120))


def test_a_connector_that_is_deleted_ends_it(tmp_path: Path) -> None:
    (incident,) = scanned(asked(tmp_path, [FAILED], []))
    assert incident.status == "resolved"


def test_what_is_planned_is_no_incident(tmp_path: Path) -> None:
    stopping = status(FAILED["name"], part("UNASSIGNED"), itself=part("UNASSIGNED"))
    paused = status(FAILED["name"], part("PAUSED"), itself=part("PAUSED"))
    assert scanned(asked(tmp_path, [RUNNING], [stopping], [RUNNING], [paused], [RUNNING], [])) == []


def test_a_task_that_is_restarted_again_and_again_is_one_incident(tmp_path: Path) -> None:
    (incident,) = scanned(asked(tmp_path, *(4 * ([FAILED], [RUNNING])), [FAILED]))
    assert (incident.rule, incident.status) == ("connect-record-too-large-client", "open")
    assert "connect-task-restart-loop" in {course.rule for course in incident.course}


def test_a_connector_that_is_resumed_within_a_day_was_not_paused_for_days(tmp_path: Path) -> None:
    paused = status(FAILED["name"], part("PAUSED"), itself=part("PAUSED"))
    states = ((0, paused), (24, RUNNING), (72, RUNNING), (73, RUNNING))

    def incidents(*hours: tuple[int, dict[str, Any]]) -> list[Incident]:
        record = tmp_path / "paused.log"
        record.write_bytes(b"".join(stamped([json.dumps(each)], BEGIN + timedelta(hours=hour)) for hour, each in hours))
        return [incident for incident in scanned(record) if not incident.pending and incident.status != "retracted"]

    assert incidents(*states) == []
    (incident,) = incidents((0, paused), (72, paused), (73, paused))
    assert (incident.rule, incident.status) == ("connect-task-paused", "open")
