"""The notifier: one entry for a receiver and an incident, newest revision, nothing dropped, nothing told twice."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from connectors.memory import MemoryReceiver
from engine.deliver import Policy, planner
from engine.deliver.planning import PlannedEntry
from engine.errors import StoreError
from engine.model.incidents import Incident
from engine.model.links import Link, LinkTargets
from engine.model.notifications import DeliveryState, Notification, Reason, Receipt
from engine.model.routes import LabelMatcher, Route, Silence, Timings
from engine.route import Target
from engine.store import Store
from tests.unit.deliver.scene import START, Scene

LATER = Receipt(DeliveryState.RETRY_LATER, "not now")
UNSURE = Receipt(DeliveryState.RETRY_LATER, "who knows", unsure=True)
REFUSED = Receipt(DeliveryState.REJECTED, "bad token")


@pytest.fixture
def scene(store: Store, ops: MemoryReceiver) -> Scene:
    return Scene(store, {"ops": ops})


def reasons(receiver: MemoryReceiver) -> list[str]:
    return [told.reason.value for told in receiver.notifications]


def test_an_incident_is_queued_at_once_and_told_after_its_wait_to_the_second(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put()
    assert scene.at(0) == 0
    assert (scene.entry().state, scene.entry().due_at) == (DeliveryState.QUEUED, START + timedelta(seconds=30))
    assert scene.at(29.999) == 0
    assert scene.at(30) == 1
    assert scene.entry().state is DeliveryState.DELIVERED
    assert [scene.at(seconds) for seconds in (31, 60, 3600)] == [0, 0, 0]
    assert reasons(ops) == ["opened"]


def test_what_changes_while_it_waits_is_told_in_one_message_of_the_newest_revision(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put()
    scene.at(0)
    scene.put(revision=2, count=4)
    scene.at(10)
    scene.put(revision=3, count=9, severity="high")
    scene.at(30)
    (told,) = ops.notifications
    assert (told.reason, told.incident.revision, told.incident.count) == (Reason.OPENED, 3, 9)


def test_what_leads_on_goes_with_every_message(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), links=LinkTargets("https://tocsin.example")))
    scene.put()
    scene.at(0)
    scene.at(30)
    assert ops.notifications[0].links == (Link("incident", "https://tocsin.example/incidents/inc-1"),)


def test_changes_wait_for_the_interval_and_worse_ones_do_not(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put(severity="high")
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, severity="critical")
    assert scene.at(31) == 1
    scene.put(revision=3, severity="critical", status="resolved")
    assert [scene.at(32), scene.at(330), scene.at(331)] == [0, 0, 1]
    assert reasons(ops) == ["opened", "escalated", "resolved"]
    assert scene.outcomes() == [("opened", "delivered"), ("escalated", "delivered"), ("resolved", "delivered")]


def test_an_open_incident_is_repeated_and_an_ended_one_is_not(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    day = 4 * 3600
    assert [scene.at(29 + day), scene.at(30 + day), scene.at(31 + day), scene.at(30 + 2 * day)] == [0, 1, 0, 1]
    scene.put(revision=2, status="resolved")
    scene.at(31 + 2 * day)
    scene.at(400 + 2 * day)
    assert scene.at(30 + 9 * day) == 0
    assert reasons(ops) == ["opened", "repeated", "repeated", "resolved"]


def test_a_change_that_is_taken_back_before_it_is_told_is_no_news(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put()
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, status="resolved")
    scene.at(40)
    scene.put(revision=3)
    scene.at(50)
    assert scene.at(400) == 0
    assert reasons(ops) == ["opened"]


@pytest.mark.parametrize("status", ["merged", "retracted"])
def test_what_ends_before_anybody_was_told_is_nobodys_business(scene: Scene, ops: MemoryReceiver, status: str) -> None:
    scene.put()
    scene.at(0)
    scene.put(revision=2, status=status, merged_into="inc-0")
    scene.at(10)
    scene.at(40)
    assert ops.notifications == []
    assert scene.store.outbox().entries() == {}


def test_who_was_told_of_a_part_is_told_of_the_survivor(store: Store) -> None:
    data, ops = MemoryReceiver(), MemoryReceiver()
    tree = Route("ops", routes=(Route("data", (LabelMatcher("component", "=", "connect"),)),))
    scene = Scene(store, {"ops": ops, "data": data}, Policy(tree))
    scene.put(id="inc-part")
    scene.at(0)
    scene.at(30)
    scene.put(id="inc-root", component="broker", rule="broker-silent")
    scene.put(id="inc-part", revision=2, status="merged", merged_into="inc-root")
    scene.at(31)
    scene.at(61)
    scene.at(62)
    assert [(told.incident.id, told.reason.value) for told in data.notifications] == [
        ("inc-part", "opened"),
        ("inc-part", "merged"),
        ("inc-root", "opened"),
    ]
    assert [told.incident.id for told in ops.notifications] == ["inc-root"]


def test_rules_that_others_explain_settle_first(store: Store, ops: MemoryReceiver) -> None:
    policy = Policy(Route("ops", timings=Timings(0, 300, 0)), explained=frozenset({"symptom"}))
    scene = Scene(store, {"ops": ops}, policy)
    scene.put(rule="symptom")
    scene.put(id="inc-2", rule="root")
    assert [scene.at(0), scene.at(19.9), scene.at(20)] == [1, 0, 1]


def test_a_failure_is_tried_again_later_and_later_and_never_dropped(scene: Scene, ops: MemoryReceiver) -> None:
    ops.answers = [LATER] * 4
    scene.put()
    scene.at(0)
    assert [scene.at(s) for s in (30, 34.9, 35, 44.9, 45, 64.9, 65, 104.9, 105)] == [0] * 8 + [1]
    assert scene.outcomes() == [("opened", "retry_later")] * 4 + [("opened", "delivered")]


def test_a_receiver_says_when_and_a_newer_revision_does_not_hurry_it(scene: Scene, ops: MemoryReceiver) -> None:
    ops.answers = [replace(LATER, after_s=90)]
    scene.put()
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, severity="low")
    assert [scene.at(60), scene.at(119.9), scene.at(120)] == [0, 0, 1]
    assert ops.notifications[0].incident.revision == 2


def test_a_refusal_waits_for_something_new_or_a_restart(scene: Scene, ops: MemoryReceiver) -> None:
    ops.answers = [REFUSED, REFUSED]
    scene.put()
    scene.at(0)
    scene.at(30)
    assert scene.entry().state is DeliveryState.REJECTED
    assert [scene.at(60), scene.at(4000)] == [0, 0]
    scene.put(revision=2)
    scene.at(4001)
    assert scene.outcomes() == [("opened", "rejected")] * 2
    scene.restart()
    assert scene.at(4002) == 1


def test_an_attempt_cut_short_is_tried_again_as_unsure(scene: Scene, ops: MemoryReceiver) -> None:
    scene.put()
    scene.at(0)
    entry = replace(scene.entry(), state=DeliveryState.SENDING, attempts=1, attempt_at=START + timedelta(seconds=30))
    scene.store.outbox().put(entry)
    scene.wait(40)
    scene.restart()
    assert scene.at(40) == 1
    assert ops.notifications[0].unsure_since == START + timedelta(seconds=30)


def test_an_unsure_attempt_is_followed_up_even_when_there_is_nothing_left_to_tell(scene: Scene, ops: MemoryReceiver) -> None:
    ops.answers = [UNSURE]
    scene.put()
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, status="retracted")
    scene.at(36)
    (told,) = ops.notifications
    assert (told.incident.status, told.unsure_since) == ("retracted", START + timedelta(seconds=30))


def test_a_receiver_that_raises_does_not_keep_others_from_being_told(store: Store, ops: MemoryReceiver) -> None:
    class Broken(MemoryReceiver):
        def deliver(self, notification: Notification) -> Receipt:
            raise RuntimeError("oh no")

    tree = Route("ops", routes=(Route("broken", goes_on=True), Route("ops")))
    scene = Scene(store, {"broken": Broken(), "ops": ops}, Policy(tree))
    scene.put()
    scene.at(0)
    assert scene.at(30) == 1
    assert scene.entry("broken").state is DeliveryState.RETRY_LATER
    assert scene.entry("broken").why == "RuntimeError: oh no"


def test_a_lane_takes_one_message_a_second_and_everything_arrives(store: Store) -> None:
    ops, free = MemoryReceiver(rate_limit_key="channel"), MemoryReceiver()
    tree = Route("ops", routes=(Route("free", goes_on=True), Route("ops")))
    scene = Scene(store, {"ops": ops, "free": free}, Policy(tree))
    for number in range(4):
        scene.put(id=f"inc-{number}")
    scene.at(0)
    assert [scene.at(s) for s in (30, 30.5, 31, 31.5, 32, 33, 34)] == [5, 0, 1, 0, 1, 1, 0]


def test_silenced_incidents_wait_for_the_end_of_the_silence(scene: Scene, ops: MemoryReceiver) -> None:
    silence = Silence("s", (LabelMatcher("component", "=", "connect"),), START, START + timedelta(seconds=600))
    scene.store.outbox().put_silence(silence)
    scene.put()
    assert [scene.at(s) for s in (0, 31, 599)] == [0, 0, 0]
    assert (scene.entry().state, scene.entry().why) == (DeliveryState.MUTED, "silenced until 2023-02-03 02:20:00 UTC")
    assert scene.at(600) == 1


def test_a_silence_that_begins_later_stops_what_waits(scene: Scene, ops: MemoryReceiver) -> None:
    ends = START + timedelta(seconds=600)
    scene.store.outbox().put_silence(Silence("s", (), START + timedelta(seconds=10), ends))
    scene.put()
    assert [scene.at(s) for s in (0, 10, 30, 300)] == [0, 0, 0, 0]
    assert scene.at(600) == 1


def test_a_run_that_ends_counts_waits_as_elapsed_and_repeats_nothing(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), explained=frozenset({"x"}), hurry=True))
    scene.put(rule="x")
    assert scene.notifier.drain(scene.wait) == 1
    scene.put(rule="x", revision=2, status="resolved")
    assert scene.notifier.drain(scene.wait) == 1
    scene.restart()
    assert scene.notifier.drain(scene.wait) == 0
    assert scene.now == START


def test_a_run_that_ends_waits_for_retries_but_not_for_ever(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), hurry=True))
    ops.answers = [replace(LATER, after_s=20)]
    scene.put()
    assert scene.notifier.drain(scene.wait) == 1
    ops.answers = [LATER] * 99
    scene.put(id="inc-2")
    assert scene.notifier.drain(scene.wait) == 0
    assert scene.now <= START + timedelta(seconds=20 + 61)
    assert scene.notifier.backlog() == 1
    ops.answers = []
    scene.restart()
    assert scene.notifier.drain(scene.wait) == 1


def test_a_stop_ends_the_wait_for_retries(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), hurry=True))
    ops.answers = [replace(LATER, after_s=20)]
    scene.put()
    waits = list[float]()
    assert scene.notifier.drain(lambda seconds: not waits.append(seconds)) == 0
    assert (len(waits), scene.notifier.backlog()) == (1, 1)


def test_the_loop_outlives_errors_and_says_each_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, said, steps = threading.Event(), [], []

    def failing() -> int:
        steps.append(1)
        if len(steps) == 3:
            stop.set()
        raise StoreError("the disk is full")

    monkeypatch.setattr("engine.deliver.notifier.POLL_S", 0.001)
    monkeypatch.setattr(scene.notifier, "step", failing)
    scene.notifier.run(stop, said.append)
    assert said == ["the notifier goes on after an error: the disk is full"]
    assert len(steps) >= 3


def test_a_step_looks_at_what_changed_or_is_due_and_at_nothing_else(
    store: Store, ops: MemoryReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops", timings=Timings(0, 300, 3600))))
    for number in range(40):
        scene.put(id=f"inc-{number}")
        scene.at(number)
    scene.at(40)
    looked_at: list[str] = []
    planned = planner.plan_delivery

    def plan(policy: Policy, target: Target, incident: Incident, *rest: Any) -> PlannedEntry:
        looked_at.append(incident.id)
        return planned(policy, target, incident, *rest)

    monkeypatch.setattr(planner, "plan_delivery", plan)
    scene.at(41)
    assert looked_at == []
    scene.put(id="inc-7", revision=2, severity="low")
    scene.at(42)
    assert looked_at == ["inc-7"]
    scene.store.outbox().put_silence(
        Silence("s", (LabelMatcher("severity", "=", "low"),), START, START + timedelta(seconds=60))
    )
    scene.at(43)
    scene.at(60)
    assert looked_at == ["inc-7"] * 3, "as the silence begins, and as it ends"
    scene.at(3600 + 5.5)
    assert len(looked_at) == 3 + 6, "six are repeated"


@pytest.fixture
def archive() -> MemoryReceiver:
    return MemoryReceiver(records=True)


def test_a_record_is_told_of_everything_at_once_whatever_routes_silences_and_ages_say(
    store: Store, ops: MemoryReceiver, archive: MemoryReceiver
) -> None:
    nobody = Route("ops", (LabelMatcher("severity", "=", "info"),))
    scene = Scene(store, {"ops": ops, "archive": archive}, Policy(nobody, max_age_s=60.0))
    ever = Silence("s", (LabelMatcher("severity", "!=", ""),), START - timedelta(1), START + timedelta(9))
    store.outbox().put_silence(ever)
    scene.put(last_seen=START - timedelta(days=9))
    assert scene.at(0) == 1
    scene.put(revision=2, status="merged", merged_into="inc-2")
    assert scene.at(1) == 1
    assert reasons(archive) == ["opened", "merged"] and ops.notifications == []


def test_a_record_gets_every_change_though_it_was_away_meanwhile(
    store: Store, ops: MemoryReceiver, archive: MemoryReceiver
) -> None:
    scene = Scene(store, {"ops": ops, "archive": archive})
    scene.put()
    scene.at(0)
    archive.answers += [UNSURE, LATER]
    for revision, changes in enumerate(({"count": 9}, {"severity": "low"}, {"status": "resolved"}, {}), 2):
        scene.put(revision=revision, **changes)
    assert [scene.at(seconds) for seconds in (1, 10, 16)] == [0, 0, 0]
    scene.restart()
    scene.at(60)
    changes = [[(each.incident.revision, each.reason.value) for each in told.changes] for told in archive.notifications]
    assert changes == [[(1, "opened")], [(3, "updated"), (4, "resolved"), (5, "reopened")]]
    assert archive.notifications[-1].incident.revision == 5
    assert [told.changes for told in ops.notifications] == [()]


def test_a_record_that_only_grows_is_written_every_ten_seconds(store: Store, archive: MemoryReceiver) -> None:
    scene = Scene(store, {"archive": archive}, Policy(Route("archive")))
    scene.put()
    scene.at(0)
    for second in range(1, 31):
        scene.put(revision=1 + second, count=second)
        scene.at(second)
    assert [told.incident.count for told in archive.notifications] == [1, 10, 20, 30]


def test_a_record_that_refuses_is_told_to_its_fallback(store: Store, ops: MemoryReceiver, archive: MemoryReceiver) -> None:
    archive.answers.append(REFUSED)
    policy = Policy(Route("nobody"), fallbacks={"archive": "ops"})
    scene = Scene(store, {"ops": ops, "archive": archive}, policy)
    scene.put()
    scene.at(0)
    scene.at(1)
    assert [told.news for told in ops.notifications] == ["sent here because archive refuses it"]
