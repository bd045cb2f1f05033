"""What is not told by itself, on a time line: what is muted, and what was old when it was first seen."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from connectors.memory import MemoryReceiver
from engine.deliver import Policy
from engine.model.links import Link, LinkTargets
from engine.model.notifications import DIGEST_RULE, DeliveryState, Reason, Receipt
from engine.model.routes import Hours, LabelMatcher, Route, Silence, TimeInterval, TimeSpan
from engine.store import Store
from tests.unit.deliver.scene import START, Scene

BREAK = TimeInterval("break", (TimeSpan(((132, 140),)),))  # 02:12 to 02:20, 120 to 600 s after START
BREAKS = Route("ops", routes=(Route("ops", hours=Hours((BREAK,))),))
OLD = START - timedelta(hours=3)
CATCHING_UP = Policy(Route("ops"), links=LinkTargets("https://t"), max_age_s=3600)


def told(receiver: MemoryReceiver) -> list[tuple[str, str]]:
    return [(each.incident.id, each.reason.value) for each in receiver.notifications]


def test_what_is_still_open_when_the_interval_ends_is_told_then(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(BREAKS))
    scene.now = START + timedelta(seconds=200)
    scene.put()
    assert [scene.at(s) for s in (200, 300, 599)] == [0, 0, 0]
    assert scene.entry().why == "muted by time interval break until 2023-02-03 02:20:00 UTC"
    scene.restart()
    assert [scene.at(600), scene.at(700)] == [1, 0]
    assert told(ops) == [("inc-1", "opened")]


def test_an_interval_that_begins_stops_what_waits(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(BREAKS))
    scene.put()
    assert [scene.at(s) for s in (100, 120, 130, 599, 600)] == [0, 0, 0, 0, 1]


def test_what_was_over_before_the_interval_ended_is_told_to_nobody_and_kept(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(BREAKS))
    scene.put()
    scene.at(200)
    scene.put(revision=2, status="resolved")
    assert [scene.at(s) for s in (300, 600, 2000)] == [0, 0, 0]
    assert (scene.entry().state, scene.entry().why) == (
        DeliveryState.MUTED,
        "it was over before it could be sent: it was muted until then",
    )


def test_the_end_of_what_was_told_is_told_after_the_interval(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(BREAKS))
    scene.put()
    scene.at(0)
    scene.at(30)
    scene.put(revision=2, status="resolved")
    assert [scene.at(s) for s in (400, 599, 600)] == [0, 0, 1]
    assert told(ops) == [("inc-1", "opened"), ("inc-1", "resolved")]


def test_a_silence_and_an_interval_are_waited_for_both(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(BREAKS))
    ends = START + timedelta(seconds=300)
    scene.store.outbox().put_silence(Silence("s", (LabelMatcher("component", "=", "connect"),), START, ends, "moving"))
    scene.put()
    scene.at(0)
    assert scene.entry().why == "silenced until 2023-02-03 02:15:00 UTC (moving)"
    scene.at(300)
    assert scene.entry().why.startswith("muted by time interval break")
    assert scene.at(600) == 1


def test_old_incidents_are_told_in_one_digest(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    scene.put(id="inc-1", last_seen=OLD, severity="high")
    scene.at(0)
    scene.put(id="inc-2", last_seen=OLD, status="resolved")
    scene.put(id="inc-3", last_seen=START - timedelta(minutes=5))
    scene.put(id="inc-4", last_seen=None, first_seen=None)
    assert [scene.at(s) for s in (30, 59, 60, 89)] == [0, 0, 2, 0]
    assert scene.at(90) == 1
    *single, digest = ops.notifications
    assert [each.incident.id for each in single] == ["inc-3", "inc-4"]
    assert (digest.reason, digest.incident.rule, digest.incident.severity) == (Reason.BACKFILL, DIGEST_RULE, "high")
    assert digest.incident.title == "2 incidents from before: 1 still open"
    assert [symptom.title.partition(":")[0] for symptom in digest.incident.symptoms] == ["high, open", "critical, resolved"]
    assert digest.links == (Link("incidents", "https://t/"),)
    assert scene.entry().state is DeliveryState.BACKFILL
    assert scene.entry().why == "sent in the digest of 2023-02-03 02:11:30 UTC, as it was old when it was first seen"
    scene.restart()
    assert [scene.at(s) for s in (100, 4000)] == [0, 0]


def test_a_sign_of_life_makes_an_old_incident_a_new_one(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    scene.put(last_seen=OLD)
    scene.at(0)
    scene.at(60)
    scene.put(revision=2, last_seen=OLD + timedelta(minutes=1))
    assert [scene.at(70), scene.at(200)] == [0, 0]
    scene.put(revision=3, last_seen=START + timedelta(seconds=250))
    assert [scene.at(300), scene.at(330)] == [0, 1]
    assert [reason for _, reason in told(ops)] == ["backfill", "opened"]


def test_what_was_fresh_when_it_was_first_seen_stays_so_however_long_it_waits(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    ends = START + timedelta(hours=5)
    scene.store.outbox().put_silence(Silence("s", (), START, ends))
    scene.put(last_seen=START)
    scene.at(0)
    scene.restart()
    assert scene.at(5 * 3600) == 1
    assert told(ops) == [("inc-1", "opened")]


def test_catching_up_for_long_does_not_put_the_digest_off_for_ever(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    for number in range(12):
        scene.put(id=f"inc-{number}", last_seen=OLD)
        assert scene.at(number * 59) == (1 if number == 11 else 0), "ten minutes are over after 10 x 59 s"
    assert [each.incident.count for each in ops.notifications] == [12]


def test_a_digest_that_fails_is_tried_again_with_what_has_joined(store: Store, ops: MemoryReceiver) -> None:
    ops.answers = [Receipt(DeliveryState.RETRY_LATER, "down", after_s=100)]
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    scene.put(last_seen=OLD)
    scene.at(0)
    assert scene.at(60) == 0
    scene.put(id="inc-2", last_seen=OLD)
    scene.at(70)
    scene.restart()
    assert [scene.at(159), scene.at(160)] == [0, 1]
    assert [each.incident.count for each in ops.notifications] == [2]


def test_a_process_that_ends_right_after_the_digest_does_not_repeat_it(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, CATCHING_UP)
    scene.put(last_seen=OLD)
    scene.at(0)
    before = scene.entry()
    scene.at(60)
    scene.store.outbox().put(before)
    scene.restart()
    assert [scene.at(61), scene.at(500)] == [0, 0]
    assert len(ops.notifications) == 1


def test_a_run_that_ends_tells_everything_by_itself_unless_an_age_is_set(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(Route("ops"), hurry=True))
    scene.put(last_seen=OLD)
    assert scene.notifier.drain(scene.wait) == 1
    scene.policy = replace(CATCHING_UP, hurry=True)
    scene.restart()
    scene.put(id="inc-2", last_seen=OLD)
    assert scene.notifier.drain(scene.wait) == 1
    assert [reason for _, reason in told(ops)] == ["opened", "backfill"]
