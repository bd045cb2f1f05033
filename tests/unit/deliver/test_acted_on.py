"""What receivers are told of what people did: at once, whatever is silenced, and never twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from connectors.memory import MemoryReceiver
from engine.model.acts import Act, ActKind
from engine.store import Store
from tests.unit.cli.incidents import AT
from tests.unit.deliver.scene import START, Scene

HOUR = 3600


@pytest.fixture
def scene(store: Store, ops: MemoryReceiver) -> Scene:
    made = Scene(store, {"ops": ops})
    made.put()
    made.at(0)
    assert made.at(30) == 1
    return made


def act(scene: Scene, kind: ActKind, seconds: float = 60, **changes: Any) -> None:
    scene.now = START + timedelta(seconds=seconds)
    scene.store.acts().record(Act(f"{kind.value} {seconds}", "inc-1", kind, "mina", "page", scene.now, **changes))


def told(receiver: MemoryReceiver) -> list[tuple[str, str]]:
    return [(each.reason.value, each.news) for each in receiver.notifications[1:]]


def test_an_acknowledgement_is_told_at_once_and_ends_the_repetitions(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.ACKNOWLEDGE)
    assert [scene.at(60), scene.at(61), scene.at(9 * HOUR)] == [1, 0, 0]
    assert told(ops) == [("updated", "acknowledged now (by mina)")]
    assert ops.notifications[-1].incident.owner == "mina"


def test_a_resolution_is_told_at_once_and_new_evidence_reopens_it(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.RESOLVE, text="restarted")
    assert [scene.at(60), scene.at(8 * HOUR)] == [1, 0]
    scene.restart()
    scene.put(revision=2, count=2, last_seen=AT + timedelta(hours=9))
    assert scene.at(9 * HOUR) == 1
    assert told(ops) == [("resolved", "resolved (by mina: restarted)"), ("reopened", "open again")]


def test_who_has_it_is_told_and_the_end_by_the_logs_waits_as_ever(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.ASSIGN, assignee="jun")
    assert scene.at(60) == 1
    scene.put(revision=2, status="resolved", why="quiet")
    assert [scene.at(359), scene.at(360)] == [0, 1]
    assert told(ops) == [("updated", "jun has it now"), ("resolved", "resolved (quiet)")]


def test_a_note_tells_nobody(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.NOTE, text="the disk is full")
    assert [scene.at(60), scene.at(400)] == [0, 0]
    assert told(ops) == []


def test_a_silence_of_the_incident_mutes_the_logs_and_not_the_people(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.SILENCE, until=START + timedelta(hours=2))
    scene.put(revision=2, severity="low")
    assert [scene.at(60), scene.at(HOUR)] == [0, 0]
    assert scene.entry().why.startswith("silenced until 2023-02-03 04:10:00 UTC")
    act(scene, ActKind.RESOLVE, HOUR + 60)
    assert scene.at(HOUR + 60) == 1
    assert told(ops) == [("resolved", "resolved (by mina)")]


def test_what_ends_an_acknowledgement_by_the_logs_is_no_act_that_breaks_a_silence(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.ACKNOWLEDGE)
    act(scene, ActKind.SILENCE, 61, until=START + timedelta(hours=2))
    assert scene.at(61) == 1
    scene.put(revision=2, status="resolved", first_seen=AT, last_seen=AT)
    scene.at(400)
    scene.put(revision=3, count=2, first_seen=AT + timedelta(hours=1), last_seen=AT + timedelta(hours=1))
    assert [scene.at(HOUR), scene.at(HOUR + 600)] == [0, 0]
    assert scene.entry().why.startswith("silenced until")


def test_what_a_person_does_after_a_restart_is_found(scene: Scene, ops: MemoryReceiver) -> None:
    act(scene, ActKind.ACKNOWLEDGE)
    scene.restart()
    assert [scene.at(60), scene.at(61)] == [1, 0]
    act(scene, ActKind.REOPEN, 120)
    assert scene.at(120) == 1
    assert told(ops)[1:] == [("updated", "open now")]


def test_a_reopened_incident_that_was_over_is_taken_up_again(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put(revision=2, status="resolved")
    assert [scene.at(330), scene.at(331)] == [1, 0]
    act(scene, ActKind.REOPEN, 400, text="still broken")
    assert scene.at(400) == 1
    assert told(ops)[1:] == [("reopened", "open again (by mina: still broken)")]
    assert scene.at(400 + 4 * HOUR) == 1, "and is repeated like others"


def test_a_receiver_that_keeps_a_record_has_every_turn(store: Store) -> None:
    record = MemoryReceiver()
    record.records = True
    scene = Scene(store, {"ops": record})
    scene.put()
    scene.at(0)
    act(scene, ActKind.ACKNOWLEDGE)
    scene.at(60)
    act(scene, ActKind.RESOLVE, 120)
    scene.at(120)
    changes = [
        (each.reason.value, each.incident.edition, each.incident.status)
        for notification in record.notifications
        for each in notification.changes
    ]
    assert changes == [("opened", "1", "open"), ("updated", "1a1", "acknowledged"), ("resolved", "1a2", "resolved")]
