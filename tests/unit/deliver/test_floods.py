"""A flood hides no fire: what is severe is told first, and what is too much is told in one digest; nothing is dropped."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from connectors.memory import MemoryReceiver
from engine.deliver import Policy
from engine.model.links import Link, LinkTargets
from engine.model.notifications import FLOOD_RULE, DeliveryState, Reason, Receipt
from engine.model.routes import LabelMatcher, Route, Silence, Timings
from engine.route.floods import LONGEST_QUEUE, SINGLES
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.cli.incidents import incident
from tests.unit.deliver.scene import START, Scene

MANY = SINGLES + 30
AT_ONCE = Route("ops", timings=Timings(0, 300, 4 * 3600))


@pytest.fixture
def ops() -> MemoryReceiver:
    return MemoryReceiver(rate_limit_key="channel")


@pytest.fixture
def scene(store: Store, ops: MemoryReceiver) -> Scene:
    return Scene(store, {"ops": ops}, Policy(AT_ONCE, links=LinkTargets("https://t")))


def flood(scene: Scene, number: int, start: int = 0, **changes: object) -> None:
    """Let the job store many incidents in one batch."""
    base = {"severity": "low", "revision": 1, "symptoms": (), **changes}
    with scene.store.batch(BatchId("query", next(scene.batches))) as ledger:
        ledger.put_incidents([incident(**{"id": f"inc-{n:05}", **base}) for n in range(start, start + number)])


def through(scene: Scene, first: int, last: int) -> None:
    for second in range(first, last):
        scene.at(second)


def test_a_critical_incident_behind_1500_low_ones_is_told_in_the_first_step(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, 1500)
    scene.at(0)
    scene.put(id="fire", severity="critical")
    assert scene.at(1) == 1
    assert [(each.incident.id, each.reason) for each in ops.notifications] == [("fire", Reason.OPENED)]
    through(scene, 2, 60)
    assert [each.reason for each in ops.notifications] == [Reason.OPENED, Reason.DIGEST]
    digest = ops.notifications[1].incident
    assert (digest.rule, digest.title, digest.count, digest.severity) == (
        FLOOD_RULE,
        "1,500 incidents at once: 1,500 still open",
        1500,
        "low",
    )
    assert ops.notifications[1].links == (Link("incidents", "https://t/"),)
    states = Counter(entry.state for entry in scene.store.outbox().entries().values())
    assert states == {DeliveryState.DELIVERED: 1502}
    assert scene.outcomes("inc-00007") == [("digest", "delivered")]


def test_without_a_digest_the_most_severe_is_told_first_and_then_the_oldest(scene: Scene, ops: MemoryReceiver) -> None:
    for number, severity in enumerate(("low", "medium", "critical", "high", "low")):
        scene.put(id=f"inc-{number}", severity=severity)
    scene.at(0)
    for second in range(1, 6):
        scene.at(second)
    assert [each.incident.id for each in ops.notifications] == ["inc-2", "inc-3", "inc-1", "inc-0", "inc-4"]


def test_a_few_are_told_one_by_one(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, SINGLES)
    through(scene, 0, 100)
    assert [each.reason for each in ops.notifications] == [Reason.OPENED] * SINGLES


@pytest.mark.slow
def test_what_trickles_in_for_long_is_no_more_than_so_many_a_minute(scene: Scene, ops: MemoryReceiver) -> None:
    for second in range(600):
        flood(scene, 1, second)
        scene.at(second)
    reasons = Counter(each.reason for each in ops.notifications)
    assert reasons[Reason.OPENED] <= 11 * SINGLES
    assert 1 <= reasons[Reason.DIGEST] <= 11
    through(scene, 600, 700)
    assert sum(each.incident.count if each.reason is Reason.DIGEST else 1 for each in ops.notifications) == 600


def test_what_comes_while_a_digest_waits_joins_it_and_later_ones_follow(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, MANY)
    scene.at(0)
    flood(scene, MANY, MANY)
    through(scene, 5, 12)
    flood(scene, MANY, 2 * MANY)
    through(scene, 12, 70)
    assert [each.incident.count for each in ops.notifications] == [2 * MANY]
    through(scene, 70, 75)
    assert [each.incident.count for each in ops.notifications] == [2 * MANY, MANY]


def test_what_gets_severe_is_told_by_itself_before_its_digest_and_after_it(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, MANY)
    scene.at(0)
    scene.put(id="inc-00001", revision=2, severity="critical")
    scene.at(1)
    through(scene, 2, 20)
    scene.put(id="inc-00002", revision=2, severity="high")
    scene.at(21)
    assert [(each.incident.id[:9], each.reason) for each in ops.notifications] == [
        ("inc-00001", Reason.OPENED),
        (ops.notifications[1].incident.id[:9], Reason.DIGEST),
        ("inc-00002", Reason.ESCALATED),
    ]
    assert ops.notifications[1].incident.count == MANY - 1


def test_the_end_of_a_flood_is_a_digest_too(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, MANY)
    through(scene, 0, 20)
    flood(scene, MANY, revision=2, status="resolved")
    through(scene, 20, 400)
    assert [each.incident.title for each in ops.notifications] == [
        f"{MANY} incidents at once: {MANY} still open",
        f"{MANY} incidents at once: 0 still open",
    ]


def test_who_edits_gets_no_message_for_each_count_of_what_a_digest_told(store: Store) -> None:
    ops = MemoryReceiver(edits=True, rate_limit_key="channel")
    scene = Scene(store, {"ops": ops}, Policy(AT_ONCE))
    flood(scene, MANY)
    through(scene, 0, 20)
    flood(scene, MANY, revision=2, count=9)
    through(scene, 20, 700)
    assert [each.reason for each in ops.notifications] == [Reason.DIGEST]


def test_a_flood_of_severe_ones_leaves_the_first_of_them_single(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, LONGEST_QUEUE + 50, severity="high")
    through(scene, 0, 3 * LONGEST_QUEUE)
    reasons = Counter(each.reason for each in ops.notifications)
    assert reasons == {Reason.OPENED: LONGEST_QUEUE, Reason.DIGEST: 1}
    (digest,) = [each.incident for each in ops.notifications if each.reason is Reason.DIGEST]
    assert (digest.severity, digest.count) == ("high", 50)


def test_what_has_a_message_or_may_have_one_is_kept_true_one_by_one(store: Store) -> None:
    marked = [Receipt(DeliveryState.DELIVERED, marks={"ts": "1"})] * SINGLES
    ops = MemoryReceiver(edits=True, rate_limit_key="channel", answers=[*marked])
    scene = Scene(store, {"ops": ops}, Policy(AT_ONCE))
    for start in range(0, SINGLES, 5):
        flood(scene, 5, start)
        through(scene, start * 10, start * 10 + 10)
    assert len(ops.notifications) == SINGLES
    ops.answers = [Receipt(DeliveryState.DELIVERED, marks={"ts": "1"})] * SINGLES
    flood(scene, SINGLES, revision=2, status="resolved")
    flood(scene, MANY, 100)
    through(scene, 1000, 1100)
    assert Counter(each.reason for each in ops.notifications) == {
        Reason.OPENED: SINGLES,
        Reason.DIGEST: 1,
        Reason.RESOLVED: SINGLES,
    }


def test_a_digest_cut_short_is_told_as_the_same_one_by_the_next_process(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, MANY)
    scene.at(0)
    ops.answers = [Receipt(DeliveryState.RETRY_LATER, "who knows", unsure=True)]
    scene.at(10)
    (entry,) = [each for each in scene.store.outbox().entries().values() if each.reason is Reason.DIGEST]
    scene.restart()
    through(scene, 11, 30)
    (told,) = ops.notifications
    assert (told.incident.id, told.incident.count) == (entry.incident, MANY)
    assert told.unsure_since == START + timedelta(seconds=10)
    scene.restart()
    through(scene, 31, 100)
    assert len(ops.notifications) == 1


def test_what_is_over_before_its_digest_is_told_as_over_and_what_was_merged_not_at_all(
    scene: Scene, ops: MemoryReceiver
) -> None:
    flood(scene, MANY)
    scene.at(0)
    flood(scene, 3, revision=2, status="merged", merged_into="inc-00009")
    flood(scene, 2, 3, revision=2, status="resolved")
    through(scene, 1, 20)
    assert ops.notifications[0].incident.title == f"{MANY - 3} incidents at once: {MANY - 5} still open"


def test_what_is_silenced_before_its_digest_waits_and_an_empty_digest_is_gone(scene: Scene, ops: MemoryReceiver) -> None:
    flood(scene, MANY)
    scene.at(0)
    ends = START + timedelta(seconds=600)
    scene.store.outbox().put_silence(Silence("s", (LabelMatcher("severity", "=", "low"),), START, ends))
    through(scene, 1, 30)
    assert ops.notifications == []
    assert {entry.state for entry in scene.store.outbox().entries().values()} == {DeliveryState.MUTED}
    through(scene, 600, 620)
    assert [each.incident.count for each in ops.notifications] == [MANY]


def test_a_run_that_ends_waits_for_no_more_to_come(store: Store, ops: MemoryReceiver) -> None:
    scene = Scene(store, {"ops": ops}, Policy(AT_ONCE, hurry=True))
    flood(scene, MANY)
    assert scene.notifier.drain(scene.wait) == 1
    assert scene.now == START


def test_a_receiver_without_a_lane_is_never_too_slow(store: Store) -> None:
    free = MemoryReceiver()
    scene = Scene(store, {"ops": free}, Policy(AT_ONCE))
    flood(scene, MANY)
    assert scene.at(0) == MANY


REFUSED = Receipt(DeliveryState.REJECTED, "bad token")


def fallen_back(store: Store, ops: MemoryReceiver, spare: MemoryReceiver, **policy: object) -> Scene:
    tree = replace(AT_ONCE, timings=Timings(30, 300, 0))
    return Scene(store, {"ops": ops, "spare": spare}, Policy(tree, fallbacks={"ops": "spare"}, **policy))


def test_who_is_named_as_fallback_is_told_at_once_when_a_receiver_refuses(store: Store, ops: MemoryReceiver) -> None:
    ops.answers, spare = [REFUSED] * 9, MemoryReceiver()
    scene = fallen_back(store, ops, spare, explained=frozenset({"connect-record-too-large-client"}))
    scene.put(severity="high")
    scene.at(0)
    scene.at(30)
    assert scene.at(31) == 1
    assert (spare.notifications[0].reason, spare.notifications[0].news) == (Reason.OPENED, "sent here because ops refuses it")
    scene.put(revision=2, severity="critical")
    scene.at(400)
    scene.at(401)
    assert [each.reason for each in spare.notifications] == [Reason.OPENED, Reason.ESCALATED]
    scene.restart()
    through(scene, 402, 420)
    assert len(spare.notifications) == 2


def test_a_fallback_may_have_its_own(store: Store, ops: MemoryReceiver) -> None:
    middle, last = MemoryReceiver(answers=[REFUSED] * 9), MemoryReceiver()
    ops.answers = [REFUSED] * 9
    policy = Policy(AT_ONCE, fallbacks={"ops": "middle", "middle": "last"})
    scene = Scene(store, {"ops": ops, "middle": middle, "last": last}, policy)
    scene.put()
    through(scene, 0, 4)
    assert [each.incident.id for each in last.notifications] == ["inc-1"]


def test_a_digest_that_is_refused_is_told_by_the_fallback(store: Store, ops: MemoryReceiver) -> None:
    ops.answers, spare = [REFUSED] * 9, MemoryReceiver(rate_limit_key="other")
    scene = fallen_back(store, ops, spare)
    flood(scene, MANY)
    through(scene, 0, 80)
    assert [(each.reason, each.incident.count) for each in spare.notifications] == [(Reason.DIGEST, MANY)]
    scene.restart()
    ops.answers = []
    through(scene, 80, 200)
    assert [each.incident.count for each in ops.notifications] == [MANY], "a new process tries the one that refused again"
    assert len(spare.notifications) == 1
