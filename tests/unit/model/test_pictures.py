"""A picture is the newest fact about each thing; what is gone is not in it; what changes all the time is kept by the hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.model.pictures import (
    ClusterPicture,
    FactChange,
    PicturedBroker,
    PicturedLag,
    PicturedSetting,
    StatedFact,
    change_by,
    picture_of,
)

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


def fact(kind: str, name: str, minute: float = 0, /, **values: object) -> StatedFact:
    return StatedFact("prod", kind, name, NOON + timedelta(minutes=minute), values)  # type: ignore[arg-type]


def topic(name: str, partitions: int = 1, configs: str = "", minute: float = 0) -> StatedFact:
    return fact("topic", name, minute, topic=name, partitions=partitions, copies=1, configs=configs)


def partition(name: str, number: int, leader: object = 1, replicas: str = "1", isr: str = "1", minute: float = 0) -> StatedFact:
    values = {"topic": name, "partition": number, "leader": leader, "replicas": replicas, "isr": isr}
    return fact("partition", f"{name}/{number}", minute, **values)


def broker(id_: int, state: str = "unfenced", rack: str = "null", minute: float = 0) -> StatedFact:
    return fact("broker", str(id_), minute, broker=id_, host=f"kafka-{id_}", port=9092, rack=rack, state=state)


def lag(group: str, name: str, behind: int, minute: float = 0) -> StatedFact:
    values = {"group": group, "topic": name, "partitions": 1, "lag": behind, "largest_lag": behind, "committed": 7}
    return fact("lag", f"{group}/{name}", minute, **values)


def group(name: str, state: str = "Stable", minute: float = 0) -> StatedFact:
    return fact("group", name, minute, group=name, state=state, members=2)


def setting(name: str, value: str, source: str = "DEFAULT_CONFIG", of: int = 1) -> StatedFact:
    values = {"broker": of, "name": name, "value": value, "synonyms": f"{source}:{name}={value}}}"}
    return fact("broker-setting", f"{of}/{name}", **values)


def pictured(*facts: StatedFact) -> ClusterPicture:
    picture = picture_of(facts)
    assert picture is not None
    return picture


def test_without_facts_there_is_no_picture() -> None:
    assert picture_of([]) is None


def test_the_newest_fact_about_a_thing_counts_whatever_the_order() -> None:
    facts = [broker(2, minute=5), broker(10), broker(2, "fenced", rack="a"), topic("t"), topic("t", 1, minute=9)]
    picture = pictured(*facts)
    assert picture == pictured(*facts[::-1])
    assert picture.brokers == {"2": PicturedBroker("kafka-2:9092"), "10": PicturedBroker("kafka-10:9092")}
    assert list(picture.brokers) == ["2", "10"]
    assert picture.at == NOON + timedelta(minutes=9)


def test_what_is_gone_is_not_in_the_picture_nor_are_its_parts() -> None:
    picture = pictured(
        *(topic("left"), partition("left", 0), fact("topic", "left", 1)),
        *(topic("smaller", 1, minute=2), partition("smaller", 0), partition("smaller", 1)),
        *(broker(1), broker(2), broker(2, "removed", minute=1)),
        *(group("g"), lag("g", "smaller", 3), fact("group", "g", 1)),
        *(fact("connector", "c", connector="c", type="sink"), fact("connector", "c", 1), fact("connector-topics", "c", 1)),
    )
    assert {name: list(topic.partitions) for name, topic in picture.topics.items()} == {"smaller": [0]}
    assert (list(picture.brokers), picture.groups, picture.connectors) == (["1"], {}, {})


def test_a_partition_without_leader_has_none_and_settings_may_hold_commas() -> None:
    picture = pictured(
        topic("t", 1, "cleanup.policy=compact,delete,retention.ms=5"), partition("t", 0, "none", "1,2,3", "Elr:")
    )
    state = picture.topics["t"].partitions[0]
    assert (state.leader, state.replicas, state.isr) == (None, ("1", "2", "3"), ())
    assert picture.topics["t"].settings == {"cleanup.policy": "compact,delete", "retention.ms": "5"}


def test_groups_have_their_lags_and_connectors_their_topics() -> None:
    picture = pictured(
        *(group("g"), lag("g", "t", 12)),
        fact("connector", "c", connector="c", type="source"),
        fact("connector-topics", "c", connector="c", topics='"b","a"'),
    )
    assert picture.groups["g"].lags == {"t": PicturedLag(1, 12, 12, 7)}
    assert (picture.groups["g"].members, picture.connectors["c"].topics) == (2, ("a", "b"))


def test_a_setting_of_a_topic_is_its_own_or_that_of_all_brokers() -> None:
    own = topic("own", configs="max.message.bytes=5")
    picture = pictured(own, topic("t"), setting("message.max.bytes", "1048588"), setting("message.max.bytes", "1048588", of=2))
    assert picture.topic_setting("own", "max.message.bytes") == PicturedSetting("5", "topic")
    assert picture.topic_setting("t", "max.message.bytes") == PicturedSetting("1048588", "default")
    assert picture.topic_setting("t", "retention.ms") is None
    differing = pictured(setting("min.insync.replicas", "1"), setting("min.insync.replicas", "2", "STATIC_BROKER_CONFIG", of=2))
    assert differing.broker_setting("min.insync.replicas") is None


def test_the_voters_are_those_of_the_cluster_that_was_asked_last() -> None:
    before, after = (fact("quorum", name, minute, voters=ids) for name, minute, ids in (("z", 0, "1,2"), ("a", 1, "3,4,5")))
    assert pictured(before, after).voters == (3, 4, 5)
    assert pictured(broker(1)).voters == ()


def test_addresses_leave_out_who_cannot_be_asked() -> None:
    picture = pictured(broker(1), broker(2, "fenced"), broker(3), broker(4), broker(5))
    assert picture.bootstrap() == "kafka-1:9092,kafka-3:9092,kafka-4:9092"
    assert picture.bootstrap(without="1") == "kafka-3:9092,kafka-4:9092,kafka-5:9092"


def test_versions_are_those_of_the_cluster_and_of_the_newest_worker() -> None:
    picture = pictured(
        fact("feature", "metadata.version", version="4.3-IV0"),
        fact("feature", "group.version", version="1"),
        fact("worker-version", "x", version="3.9.1"),
    )
    assert picture.versions == {"kafka": "4.3-IV0", "connect": "3.9.1"}


def test_a_fact_that_is_not_news_is_not_stored_again() -> None:
    assert change_by(broker(1, minute=3), broker(1)) is None
    assert change_by(broker(1, "fenced", minute=3), broker(1)) == FactChange(broker(1, "fenced", minute=3), is_news=True)
    assert change_by(broker(1), None) == FactChange(broker(1), is_news=True)


def test_of_lags_one_an_hour_is_kept() -> None:
    later = lag("g", "t", 9, minute=35)
    assert change_by(later, lag("g", "t", 3, minute=5)) == FactChange(later, lag("g", "t", 3, minute=5), is_news=True)
    assert change_by(lag("g", "t", 9, minute=65), lag("g", "t", 3)) == FactChange(lag("g", "t", 9, minute=65), is_news=True)


def test_what_every_round_states_lasts_as_long_as_the_rounds_go_on() -> None:
    first = change_by(fact("cluster", "x", cluster_id="x"), None)
    assert first is not None
    assert first.is_news
    second = change_by(fact("cluster", "x", 5, cluster_id="x"), first.stored)
    assert second is not None
    assert (second.stored.at, second.is_news, pictured(second.stored).at) == (NOON, False, NOON + timedelta(minutes=5))
    assert change_by(fact("cluster", "x", 4, cluster_id="x"), second.stored) is None
    third = change_by(fact("cluster", "x", 40, cluster_id="x"), second.stored)  # nobody answered in between
    assert third is not None
    assert (third.stored.at, third.is_news) == (NOON + timedelta(minutes=40), False)
