"""What a cluster says, beside the logs of its brokers: the blast radius of a broker that died, and its fix without a gap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from connectors.kafka_cluster.printing import ClusterInventory, lines_of, topic_rows
from engine.asking import stamped
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


def pictures_of(*topics: dict[str, object]) -> list[tuple[float, ClusterInventory]]:
    inventory = ClusterInventory("xyz", topics=topic_rows(topics))
    return [(float(minute), inventory) for minute in range(-100, 0)]


def test_a_silent_broker_names_the_topics_that_only_it_had_by_the_last_picture_before() -> None:
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    incident = one(logs.with_log("asked.log", asked(*pictures_of(LONE, ORDERS))))
    assert incident.title == "account_event has no leader: its only replica is on broker 1, which went silent"
    assert "account_event" in incident.impact
    assert "orders" not in incident.impact
    assert '{"topic":"account_event","partition":0,"replicas":[1,2,3]}' in fix_text(incident)


def test_a_topic_that_got_more_replicas_before_is_not_named() -> None:
    logs = story(STORY).only(lambda name: name.startswith("broker-"))
    spread = topic("account_event", 1, replicas=(1, 2, 3))
    pictures = [(minute - 130, inventory) for minute, inventory in pictures_of(LONE, ORDERS)] + pictures_of(spread, ORDERS)
    incident = one(logs.with_log("asked.log", asked(*pictures)))
    assert incident.title == "Broker 1 went silent"


def test_a_picture_without_trouble_is_no_incident() -> None:
    logs = story(STORY).only(lambda name: name == "nothing")
    assert play(logs.with_log("asked.log", asked(*pictures_of(LONE, ORDERS)))) == []
