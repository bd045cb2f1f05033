"""What a cluster says, beside the logs of its brokers: the blast radius of a broker that died, and its fix without a gap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from connectors.kafka_cluster.printing import (
    ClusterInventory,
    broker_rows,
    lag_of_topics,
    lines_of,
    member_row,
    topic_rows,
)
from engine.asking import stamped
from engine.model.placeholders import unfilled_in
from tests.rulepack.playing import fix_text, one, play, story
from tests.unit.connectors.kafka_cluster.test_printing import topic

STORY = Path(__file__).parents[4] / "samples" / "4-silent-broker"
DIED = datetime(2022, 10, 5, 8, 5, 39, tzinfo=UTC)
LONE, ORDERS = topic("account_event", 1, replicas=(1,)), topic("orders", 1, replicas=(1, 2, 3))


def asked(*pictures: tuple[float, ClusterInventory]) -> str:
    """Return the record of rounds at minutes relative to the death of broker 1; the first of every hour is whole."""
    before, whole_at, text = None, None, b""
    for minute, inventory in pictures:
        whole = whole_at is None or minute - whole_at >= 60
        text += stamped(lines_of(before, inventory, whole), DIED + timedelta(minutes=minute))
        before, whole_at = inventory, minute if whole else whole_at
    return text.decode()


BROKERS = {
    "brokers": [{"broker_id": id_, "host": f"kafka-{id_}", "port": 9092, "rack": None, "is_fenced": False} for id_ in (1, 2, 3)]
}


def inventory_of(*topics: dict[str, object]) -> ClusterInventory:
    coordinated = {"group_state": "Stable", "protocol_data": "range", "members": [{}, {}]}
    return ClusterInventory(
        "xyz",
        broker_rows(BROKERS),
        topics=topic_rows(topics),
        settings={"orders": "min.insync.replicas=3"},
        groups={"sign-ups": "Stable"},
        members={"sign-ups": member_row("sign-ups", coordinated, 2, "kafka-2:9092", "Stable")},
        lags={"sign-ups": lag_of_topics("sign-ups", {("account_event", 0): 3}, {("account_event", 0): 7})},
    )


def pictures_of(*topics: dict[str, object]) -> list[tuple[float, ClusterInventory]]:
    return [(float(minute), inventory_of(*topics)) for minute in (-100, -70, -40, -10)]


def test_a_silent_broker_names_what_it_touches_by_the_last_picture_before() -> None:
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    told = logs.with_log("asked.log", asked(*pictures_of(LONE, ORDERS)))
    incident = one(told)
    assert incident.title == "account_event has no leader: its only replica is on broker 1, which went silent"
    assert (
        "As the cluster was at 2022-10-05 07:55:39 UTC: broker 1 led 2 partitions (account_event-0, orders-0); had the only"
        " replica of account_event-0; without it fewer replicas are in sync than min.insync.replicas in orders. Read by group"
        " sign-ups."
    ) in incident.impact
    fix = fix_text(incident)
    assert '{"topic":"account_event","partition":0,"replicas":[1,2,3]}' in fix
    assert "--bootstrap-server kafka-2:9092,kafka-3:9092 " in fix
    assert unfilled_in(incident) == []
    assert incident.blast is not None
    assert one(told.backwards()) == incident


def test_a_step_that_was_done_meanwhile_is_told_as_done() -> None:
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    spread = topic("account_event", 1, replicas=(1, 2, 3))
    pictures = [*pictures_of(LONE, ORDERS), (20.0, inventory_of(spread, ORDERS))]
    incident = one(logs.with_log("asked.log", asked(*pictures)))
    assert "had the only replica of account_event-0" in incident.impact
    assert [step.is_done for step in incident.fix if step.file] == [True]


def test_a_topic_that_got_more_replicas_before_is_not_named() -> None:
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    spread = topic("account_event", 1, replicas=(1, 2, 3))
    pictures = [(minute - 130, inventory) for minute, inventory in pictures_of(LONE, ORDERS)] + pictures_of(spread, ORDERS)
    incident = one(logs.with_log("asked.log", asked(*pictures)))
    assert incident.title == "Broker 1 went silent"


def test_a_picture_without_trouble_is_no_incident() -> None:
    logs = story(STORY).only(lambda name: name == "nothing")
    assert play(logs.with_log("asked.log", asked(*pictures_of(LONE, ORDERS)))) == []


def away(inventory: ClusterInventory) -> ClusterInventory:
    """Return `inventory` with broker 1 fenced, and without leaders that it was."""
    fenced = [{**broker, "is_fenced": broker["broker_id"] == 1} for broker in BROKERS["brokers"]]
    lost = topic_rows([topic("account_event", -1, replicas=(1,)), ORDERS])
    return replace(inventory, brokers=broker_rows({"brokers": fenced}), topics=lost)


def test_a_broker_that_is_away_is_one_incident_without_any_log_and_ends_when_it_is_back() -> None:
    healthy = inventory_of(LONE, ORDERS)
    rounds = [(-3.0, healthy), *((minute / 2, away(healthy)) for minute in range(9))]
    nothing = story(STORY).only(lambda name: name == "nothing")
    incident = one(nothing.with_log("asked.log", asked(*rounds)))
    assert (incident.rule, incident.status) == ("broker-lone-partitions-offline", "open")
    assert incident.title == "account_event has no leader: its only replica is on broker 1, which is away"
    assert "broker 1 led 2 partitions (account_event-0, orders-0)" in incident.impact
    over = one(nothing.with_log("asked.log", asked(*rounds, (8.0, healthy), (12.0, healthy))))
    assert over.status == "resolved"


def test_a_broker_that_is_restarted_is_no_incident() -> None:
    healthy = inventory_of(LONE, ORDERS)
    nothing = story(STORY).only(lambda name: name == "nothing")
    rounds = [(-3.0, healthy), (0.0, away(healthy)), (0.5, away(healthy)), (1.0, healthy), (9.0, healthy)]
    assert play(nothing.with_log("asked.log", asked(*rounds))) == []


def test_a_broker_whose_silence_and_absence_are_known_is_one_incident() -> None:
    healthy = inventory_of(LONE, ORDERS)
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    rounds = [(-40.0, healthy), (-10.0, healthy), *((minute / 2, away(healthy)) for minute in range(1, 90, 5))]
    incident = one(logs.with_log("asked.log", asked(*rounds)))
    assert incident.key[1] == "broker-silent"
    assert {symptom.rule for symptom in incident.symptoms} >= {"broker-away", "broker-lone-partitions-offline"}
