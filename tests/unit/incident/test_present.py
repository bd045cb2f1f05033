"""A picture fills what the lines do not give, and tells what a step changes as it is now: done is done."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from engine.incident.present import choices_of, known_values, with_present_values
from engine.model.blast import of_brokers, of_connector, of_topic
from engine.model.expressions import reassignment
from engine.model.incidents import RenderedStep
from engine.model.pictures import ClusterPicture, StatedFact
from tests.unit.model.test_blast import scene
from tests.unit.model.test_pictures import broker, fact, partition, setting, topic

LIMIT = (
    "kafka-configs.sh --bootstrap-server x --alter --entity-type topics --entity-name {} --add-config max.message.bytes=2097152"
)
LIMITS = setting("message.max.bytes", "1048588")


def told(step: RenderedStep, picture: ClusterPicture, topic: str = "") -> tuple[str, bool]:
    shown = with_present_values(step, topic, picture)
    return shown.do, shown.is_done


def test_addresses_and_ids_are_those_of_the_picture_and_what_is_configured_stays() -> None:
    radius = of_brokers(["1"], "broker 1", scene())
    values = known_values({}, radius, scene())
    assert (values["bootstrap"], values["brokers"]) == ("kafka-2:9092,kafka-3:9092", "1,2,3")
    assert "bootstrap" not in known_values({"bootstrap": "lb:9092"}, radius, scene())


def test_brokers_that_are_away_are_none_to_move_partitions_to() -> None:
    radius = of_brokers(["1"], "broker 1", scene())
    away = scene(broker(1, "fenced", minute=1), broker(3, "absent", minute=1), broker(4))
    values = known_values({}, radius, away)
    assert (values["brokers"], values["bootstrap"]) == ("2,4", "kafka-2:9092,kafka-4:9092")
    rows = json.loads(reassignment(values["lone_topic.all"], values["lone_partition.all"], values["brokers"]))["partitions"]
    assert [row["replicas"] for row in rows] == [[1, 2, 4]]  # its own data is on 1
    nobody = scene(*(broker(id_, "fenced", minute=1) for id_ in (1, 2, 3)))
    assert "brokers" not in known_values({}, radius, nobody)


def test_what_lines_name_is_not_replaced_by_the_picture() -> None:
    radius = of_brokers(["1"], "broker 1", scene())
    lines = {"lone_topic": "new", "lone_topic.all": ["new"], "lone_partition": 4, "lone_partition.all": [4]}
    assert "lone_topic" not in known_values(lines, radius, scene())
    assert "lone_topic" not in known_values({"lone_topic": "account_event", "lone_partition": 7}, radius, scene())
    assert known_values({"lone_topic": "account_event", "lone_partition": 0}, radius, scene())["lone_partition.all"] == [0]
    assert "brokers" not in known_values({"brokers": "7", "brokers.all": ["7"]}, radius, scene())
    worker = scene(fact("connector", "cdc", connector="cdc", type="source", worker="kafka-connect-1:8083"))
    assert "connect_url" not in known_values({}, of_connector("cdc", worker), worker)  # http or https: nobody said


def test_partitions_with_one_replica_get_others_and_keep_their_own() -> None:
    values = known_values({}, of_brokers(["1"], "broker 1", scene()), scene())
    assert (values["lone_topic.all"], values["lone_partition.all"]) == (["account_event"], [0])
    more = scene(topic("b-c", 2), partition("b-c", 0), partition("b-c", 1), broker(4), broker(5))
    values = known_values({}, of_brokers(["1"], "broker 1", more), more)
    assert values["lone_topic.all"] == ["account_event", "b-c"]
    rows = json.loads(reassignment(values["lone_topic.all"], values["lone_partition.all"], values["brokers"]))["partitions"]
    assert [(row["topic"], row["partition"], row["replicas"]) for row in rows] == [
        ("account_event", 0, [1, 2, 3]),
        ("b-c", 0, [1, 2, 3]),
        ("b-c", 1, [1, 3, 4]),
    ]


def test_a_sink_has_its_group_and_no_connector_a_topic_that_its_lines_do_not_name() -> None:
    assert known_values({}, of_connector("archive", scene()), scene())["group"] == "connect-archive"
    for name in ("cdc", "archive"):
        assert "topic" not in known_values({}, of_connector(name, scene()), scene())


def test_a_source_may_be_about_its_topics_and_a_sink_about_none() -> None:
    sink = scene(fact("connector", "archive", connector="archive", type="sink"))
    assert choices_of(of_connector("cdc", scene()), scene()) == {"topic": ("account_event",)}
    assert choices_of(of_connector("archive", sink), sink) == {}
    assert choices_of(of_connector("archive", scene()), scene()) == {}  # of no type that was told
    assert choices_of(of_topic("account_event", scene()), scene()) == {"group": ("audit",)}


def test_a_step_tells_the_present_value_and_where_it_comes_from() -> None:
    step = RenderedStep("Let the topic take it", "topic", run=LIMIT.format("orders"))
    assert told(step, scene(LIMITS)) == (
        "Let the topic take it (max.message.bytes of orders is 1048588 by default)",
        False,
    )
    dated = with_present_values(step, "", scene(LIMITS), datetime(2026, 11, 26, 12, 30, tzinfo=UTC)).do
    assert dated == "Let the topic take it (max.message.bytes of orders is 1048588 by default; as of 2026-11-26 12:30 UTC)"
    static = scene(setting("message.max.bytes", "1000000", "STATIC_BROKER_CONFIG"))
    assert "1000000 set in the brokers' configuration)" in told(step, static)[0]
    assert told(step, scene()) == ("Let the topic take it", False)  # the brokers were not asked for it
    unknown = RenderedStep("Let the topic take it", "topic", run=LIMIT.format("${topic:?}"))
    assert told(unknown, scene(LIMITS)) == ("Let the topic take it", False)


def test_a_step_that_is_done_is_told_as_done() -> None:
    step = RenderedStep("Let the topic take it", "topic", run=LIMIT.format("big"))
    for value in ("2097152", "4194304"):
        picture = scene(topic("big", configs=f"max.message.bytes={value}"), LIMITS)
        assert told(step, picture) == (
            f"Done already: Let the topic take it (max.message.bytes of big is {value} set for the topic)",
            True,
        )
    for name, lower in (("offsets.topic.replication.factor", "1"), ("socket.request.max.bytes", "104857600")):
        lowered = RenderedStep("Not so much", "broker", set={name: lower})
        assert told(lowered, scene(setting(name, f"{lower}3")))[1] is False
        assert told(lowered, scene(setting(name, lower)))[1] is True
    unset = RenderedStep("Keep it longer", "topic", set={"retention.ms": "5"})
    assert told(unset, scene(topic("big", configs="retention.ms=7")), "big")[1] is False  # more is not as good


def test_settings_of_brokers_are_done_only_together() -> None:
    step = RenderedStep("By first use", "broker", set={"auto.create.topics.enable": "false", "default.replication.factor": "3"})
    both = [setting("auto.create.topics.enable", "false"), setting("default.replication.factor", "3")]
    assert told(step, scene(*both))[1] is True
    assert told(step, scene(both[0])) == ("By first use (auto.create.topics.enable of the brokers is false by default)", False)


def test_a_reassignment_is_done_when_every_partition_has_the_replicas() -> None:
    rows = reassignment("account_event", [0], "1,2,3")
    step = RenderedStep("Spread it", "topic", file={"increase.json": rows})
    spread: StatedFact = partition("account_event", 0, 1, "3,1,2", "1,2,3", minute=1)
    assert told(step, scene()) == ("Spread it", False)
    assert told(step, scene(spread)) == ("Done already: Spread it (its partitions have these replicas)", True)
