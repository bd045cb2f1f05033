"""What may break in a cluster that is asked is told once a day at most, and only when it is other than before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from connectors.memory import MemoryReceiver
from engine.deliver import AuditNotice, Policy
from engine.deliver.audit_digests import audit_incident, begin_of_day
from engine.language import words_of
from engine.model.links import LinkTargets
from engine.model.notifications import DeliveryState, Receipt
from engine.model.pictures import StatedFact
from engine.model.routes import Route
from engine.risks.judging import judged
from engine.store import Store
from engine.store.store import BatchId
from tests.unit.deliver.scene import START, Scene
from tests.unit.model.test_pictures import broker, fact, partition, topic
from tests.unit.risks.clusters import cluster
from tests.unit.risks.clusters import topic as audited

HOUR, DAY = 3600.0, 86_400.0
AT_EIGHT = 8 * 60  # START is at 02:10
DUE = 6 * HOUR  # after START


def policy(minute: int = AT_EIGHT) -> Policy:
    return Policy(Route("other"), links=LinkTargets("https://tocsin.example"), audit=AuditNotice("ops", minute))


@pytest.fixture
def scene(store: Store, ops: MemoryReceiver) -> Scene:
    return Scene(store, {"ops": ops, "other": MemoryReceiver()}, policy())


def asked(scene: Scene, seconds: float, *facts: StatedFact) -> None:
    """Let the cluster be asked that long after the start."""
    at = START + timedelta(seconds=seconds)
    with scene.store.batch(BatchId("query", next(scene.batches))) as ledger:
        stated = [fact("cluster", "x", cluster_id="x"), *facts]
        ledger.put_facts(replace(each, at=at) for each in stated)


def lone(name: str) -> list[StatedFact]:
    return [broker(1), broker(2), topic(name), partition(name, 0)]


def titles(ops: MemoryReceiver) -> list[str]:
    return [notification.incident.title for notification in ops.notifications]


def test_a_digest_is_sent_from_its_time_of_the_day_on_and_again_when_the_risks_are_others(
    scene: Scene, ops: MemoryReceiver
) -> None:
    scene.at(DUE - 1800)
    asked(scene, DUE - 1000, *lone("orders"))
    scene.restart()
    scene.policy = policy()
    assert scene.at(DUE - 900) == 1, "the day began at 08:00 of the day before"
    assert scene.at(DUE) == 0, "nothing has changed at 08:00"
    (sent,) = ops.notifications
    assert (sent.incident.title, sent.incident.severity, sent.incident.status) == ("1 risk in prod", "info", "open")
    assert [symptom.title for symptom in sent.incident.symptoms] == [
        "high: The partition of topic orders has one replica, on broker 1"
    ]
    assert [link.url for link in sent.links] == ["https://tocsin.example/audit"]
    asked(scene, DUE + HOUR, *lone("bills"))
    assert scene.at(DUE + 2 * HOUR) == 0, "at most one a day"
    asked(scene, DUE + DAY - 60)
    assert scene.at(DUE + DAY) == 1
    assert titles(ops) == ["1 risk in prod", "2 risks in prod"]
    asked(scene, DUE + 2 * DAY - 60)
    assert scene.at(DUE + 2 * DAY) == 0, "the risks are the same"
    gone = [StatedFact("prod", "topic", name, START) for name in ("orders", "bills")]
    asked(scene, DUE + 3 * DAY - 60, *gone)
    assert scene.at(DUE + 3 * DAY) == 1
    assert titles(ops)[2:] == ["No risk is left in prod"]
    assert ops.notifications[-1].incident.status == "resolved"


def test_no_digest_is_sent_twice_after_a_restart_nor_without_risks_nor_by_a_bounded_run(
    scene: Scene, ops: MemoryReceiver
) -> None:
    asked(scene, 0, broker(1), broker(2))
    assert scene.at(DUE) == 0
    asked(scene, DUE, *lone("orders"))
    scene.policy = replace(policy(), hurry=True)
    scene.restart()
    assert scene.at(DUE + 60) == 0
    scene.policy = policy()
    scene.restart()
    assert scene.at(DUE + 120) == 1
    scene.restart()
    assert scene.at(DUE + 180) == 0
    assert titles(ops) == ["1 risk in prod"]


def test_one_that_was_planned_before_a_restart_is_sent_after_it(scene: Scene, ops: MemoryReceiver) -> None:
    asked(scene, DUE, *lone("orders"))
    ops.answers.append(Receipt(DeliveryState.RETRY_LATER, "down", 600.0))
    assert scene.at(DUE + 60) == 0
    assert scene.at(DUE + 70) == 0
    asked(scene, DUE + 80, *lone("bills"))
    scene.restart()
    assert scene.at(DUE + 90) == 0, "it is retried when the receiver wants it"
    assert scene.at(DUE + 700) == 1
    assert titles(ops)[-1] == "2 risks in prod"


def test_one_that_was_refused_is_tried_on_the_next_day(scene: Scene, ops: MemoryReceiver) -> None:
    asked(scene, DUE, *lone("orders"))
    ops.answers.append(Receipt(DeliveryState.REJECTED, "no such channel"))
    assert scene.at(DUE + 60) == 0
    asked(scene, DUE + 12 * HOUR)
    assert scene.at(DUE + 12 * HOUR) == 0
    asked(scene, DUE + DAY)
    assert scene.at(DUE + DAY) == 1


def test_a_cluster_that_nobody_asks_is_looked_at_again(scene: Scene, ops: MemoryReceiver) -> None:
    asked(scene, 0, *lone("orders"))
    assert scene.at(DUE) == 0
    asked(scene, DUE + 60)
    assert scene.at(DUE + 120) == 0
    assert scene.at(DUE + 700) == 1


def test_without_the_setting_nobody_is_told_and_a_new_setting_counts_at_once(scene: Scene, ops: MemoryReceiver) -> None:
    asked(scene, DUE, *lone("orders"))
    scene.policy = replace(policy(), audit=None)
    scene.restart()
    assert scene.at(DUE + 60) == 0
    scene.notifier.reconfigure(policy(), scene.receivers)
    assert scene.at(DUE + 61) == 1


@pytest.mark.parametrize(("now", "begin"), [("08:00", "26T08:00"), ("07:59", "25T08:00"), ("23:59", "26T08:00")])
def test_the_day_begins_at_its_minute(now: str, begin: str) -> None:
    at = datetime.fromisoformat(f"2026-11-26T{now}+00:00")
    assert begin_of_day(AT_EIGHT, at) == datetime.fromisoformat(f"2026-11-{begin}").replace(tzinfo=UTC)


def test_the_fingerprint_is_of_which_risks_there_are_and_the_text_is_in_the_language_of_the_receiver() -> None:
    one, other = (judged(cluster(audited("lone", (id_,)))) for id_ in (1, 2))
    assert audit_incident(one).revision == audit_incident(other).revision
    assert audit_incident(one).revision != audit_incident(judged(cluster(audited("alone", (1,))))).revision
    assert 0 <= audit_incident(one).revision < 2**31
    korean = words_of("ko")
    assert korean.sentence(audit_incident(one).title) == "prod: 위험 1건"
    assert "2026-11-26" in korean.sentence(audit_incident(one).cause)
    assert korean.sentence(audit_incident(one).cause) != audit_incident(one).cause
