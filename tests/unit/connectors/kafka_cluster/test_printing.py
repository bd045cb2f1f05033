"""From what kafka-python answers to the lines of Kafka's tools: all of it once, then what has changed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from connectors.kafka_cluster.printing import (
    ClusterInventory,
    broker_rows,
    broker_settings,
    gone_line,
    gone_topics,
    lag_of_topics,
    lag_rows,
    lag_table,
    lines_of,
    quorum_row,
    settings_of,
    topic_rows,
    with_absent,
    with_unlisted,
)
from tests.unit.parse.reading import events

ID = "29ed2c5c-9f8a-4cdf-9b82-3efddb4436ea"
STAMP = "2026-11-26T22:11:25.123456000Z"


def topic(name: str, *leaders: int, error_code: int = 0, replicas: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    partitions = [
        {"partition_index": number, "leader_id": leader, "replica_nodes": list(replicas), "isr_nodes": [2, 1], "error_code": 0}
        for number, leader in enumerate(leaders)
    ]
    return {"error_code": error_code, "name": name, "topic_id": ID, "partitions": partitions[::-1]}


BROKERS = {
    "brokers": [{"broker_id": id_, "host": f"kafka-{id_}", "port": 9092, "rack": None, "is_fenced": id_ == 2} for id_ in (2, 1)]
}
INVENTORY = ClusterInventory(
    "xyz",
    broker_rows(BROKERS),
    "LeaderId:               1",
    topic_rows([topic("b", 1, -1), topic("a", 1)]),
    {"b": "retention.ms=1"},
    {"g": "Stable"},
)


def test_a_whole_picture_is_what_the_tools_print() -> None:
    assert "\n".join(lines_of(INVENTORY, INVENTORY, whole=True)).splitlines() == [
        "Cluster ID: xyz",
        "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE",
        "1          kafka-1                        9092       null       unfenced   broker",
        "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE",
        "2          kafka-2                        9092       null       fenced     broker",
        "ClusterId:              xyz",
        "LeaderId:               1",
        "Topic: a\tTopicId: Ke0sXJ-KTN-bgj7920Q26g\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: ",
        "\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
        "Topic: b\tTopicId: Ke0sXJ-KTN-bgj7920Q26g\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: retention.ms=1",
        "\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
        "\tTopic: b\tPartition: 1\tLeader: none\tReplicas: 1,2\tIsr: 1,2",
        "GROUP                          STATE",
        "g                              Stable",
    ]


def test_without_a_change_the_cluster_is_named_and_no_more() -> None:
    assert lines_of(INVENTORY, INVENTORY, whole=False) == ["Cluster ID: xyz"]
    assert lines_of(None, INVENTORY, whole=False) == lines_of(INVENTORY, INVENTORY, whole=True)


def test_of_a_topic_only_the_partitions_that_have_changed_are_printed() -> None:
    after = replace(INVENTORY, topics=topic_rows([topic("b", 1, 2), topic("a", 1)]))
    summary, *partitions = lines_of(INVENTORY, after, whole=False)[1:]
    assert summary.startswith("Topic: b\t")
    assert partitions == ["\tTopic: b\tPartition: 1\tLeader: 2\tReplicas: 1,2\tIsr: 1,2"]
    changed = replace(INVENTORY, settings={})
    assert [line[:9] for line in lines_of(INVENTORY, changed, whole=False)] == ["Cluster I", "Topic: b\t"]


def test_a_broker_a_controller_and_a_group_that_have_changed_are_printed() -> None:
    unfenced = {**BROKERS["brokers"][0], "is_fenced": False}
    after = replace(
        INVENTORY, brokers=broker_rows({"brokers": [unfenced, BROKERS["brokers"][1]]}), quorum="x", groups={"g": "Empty"}
    )
    lines = "\n".join(lines_of(INVENTORY, after, whole=False))
    assert "kafka-2                        9092       null       unfenced" in lines
    assert "kafka-1" not in lines
    assert "ClusterId:              xyz\nx" in lines
    assert "g                              Empty" in lines


def test_topics_that_a_broker_has_no_answer_about_are_left_out_and_missing_ones_are_known() -> None:
    after = replace(INVENTORY, topics=topic_rows([topic("a", 1), topic("b", 1, error_code=29)]))
    assert gone_topics(INVENTORY, after) == ["b"]
    assert gone_topics(None, after) == []
    assert gone_line("b") == "Error while executing topic command : Topic 'b' does not exist as expected"


def test_voters_and_observers_are_listed() -> None:
    replicas = {"current_voters": [{"replica_id": 1}, {"replica_id": 2}], "observers": [{"replica_id": 3}]}
    text = quorum_row({"topics": [{"partitions": [{"leader_id": 2, "leader_epoch": 7, **replicas}]}]})
    assert [line.split() for line in text.splitlines()] == [
        ["LeaderId:", "2"],
        ["LeaderEpoch:", "7"],
        ["CurrentVoters:", "[1,2]"],
        ["CurrentObservers:", "[3]"],
    ]


def test_the_settings_of_a_topic_are_those_that_are_its_own() -> None:
    configs = {
        "retention.ms": {"value": "60000", "config_source": "DYNAMIC_TOPIC_CONFIG"},
        "min.insync.replicas": {"value": "2", "config_source": "DYNAMIC_DEFAULT_BROKER_CONFIG"},
        "cleanup.policy": {"value": "compact", "config_source": "DYNAMIC_TOPIC_CONFIG"},
    }
    assert settings_of(configs) == "cleanup.policy=compact,retention.ms=60000"


def test_a_setting_has_its_sources_and_a_secret_has_none() -> None:
    synonyms = [
        {"source": "STATIC_BROKER_CONFIG", "name": "log.retention.ms", "value": "-1"},
        {"source": "DEFAULT_CONFIG", "name": "log.retention.hours", "value": "168"},
    ]
    configs = {
        "log.retention.ms": {"value": "-1", "is_sensitive": False, "synonyms": synonyms},
        "ssl.key.password": {"value": "s3cret", "is_sensitive": True, "synonyms": [{**synonyms[0], "value": "s3cret"}]},
    }
    text = "\n".join(broker_settings("1", configs))
    assert text.splitlines() == [
        "All configs for broker 1 are:",
        "  log.retention.ms=-1 sensitive=false"
        " synonyms={STATIC_BROKER_CONFIG:log.retention.ms=-1, DEFAULT_CONFIG:log.retention.hours=168}",
        "All configs for broker 1 are:",
        "  ssl.key.password=null sensitive=true synonyms={}",
    ]


def test_lag_is_unknown_where_the_end_is() -> None:
    lags = lag_rows("g", {("b", 0): 3, ("a", 1): 5}, {("b", 0): 10})
    assert [row.split() for row in lags] == [["g", "a", "1", "5", "-", "-"], ["g", "b", "0", "3", "10", "7"]]
    assert [row.split()[0] for row in lag_table(lags)] == ["GROUP", "g", "g"]
    assert lag_table([]) == []


SETTINGS = {"message.max.bytes": {"value": "1048588", "is_sensitive": False}}


def test_every_first_line_begins_an_event_with_the_time_of_asking() -> None:
    text = "\n".join(
        (*lines_of(None, INVENTORY, whole=True), *broker_settings("1", SETTINGS), *lag_table(["g t 0 1 2 1"]), gone_line("x"))
    )
    seen = events("".join(f"{STAMP} {line}\n" for line in text.splitlines()))
    assert [event.message[:9] for event in seen] == [
        "Cluster I",
        "ID       ",
        "ID       ",
        "ClusterId",
        "Topic: a\t",
        "Topic: a\t",
        "Topic: b\t",
        "Topic: b\t",
        "Topic: b\t",
        "GROUP    ",
        "All confi",
        "GROUP    ",
        "Error whi",
    ]
    assert all(event.timestamp is not None and event.labels["asked"] == "kafka-cluster" for event in seen)


def test_the_lag_of_a_group_is_told_by_topic_and_of_topics_whose_ends_are_known() -> None:
    rows = lag_of_topics("g", {("b", 0): 3, ("b", 1): 9, ("a", 1): 5}, {("b", 0): 10, ("b", 1): 9})
    assert [row.split("\t") for row in rows.values()] == [
        ["Group: g", "Topic: b", "Partitions: 2", "Lag: 7", "LargestLag: 7", "Committed: 12", "State: -", *RISING]
    ]


RISING = ["From: 7", "Since: 0", "Peak: 7"]


def test_a_lag_rises_since_it_last_fell_by_a_fifth() -> None:
    rows: dict[str, str] = {}
    told = []
    for end in (10, 20, 18, 30, 23, 24, 0, 5):
        rows = dict(lag_of_topics("g", {("t", 0): 0}, {("t", 0): end}, "Stable", rows, 300.0))
        told.append([int(part.split()[1]) for part in rows["t"].split("\t")[-3:]])
    assert told == [
        [10, 0, 10],
        [10, 300, 20],
        [10, 600, 20],
        [10, 900, 30],
        [23, 0, 23],
        [23, 300, 24],
        [0, 0, 0],
        [5, 0, 5],  # what rises from nothing rises since then
    ]


def test_partitions_whose_end_is_unknown_let_no_lag_fall() -> None:
    offsets = {("t", 0): 0, ("t", 1): 0}
    before = dict(lag_of_topics("g", offsets, {("t", 0): 10, ("t", 1): 100}, "Stable", elapsed_s=300.0))
    for ends in ({("t", 0): 20}, {}):
        assert lag_of_topics("g", offsets, ends, "Stable", before, 300.0) == before
    grown = lag_of_topics("g", offsets, {("t", 1): 150}, "Stable", before, 300.0)
    assert grown["t"].endswith("Lag: 150\tLargestLag: 150\tCommitted: 0\tState: Stable\tFrom: 110\tSince: 300\tPeak: 150")
    fallen = lag_of_topics("g", {("t", 0): 0}, {("t", 0): 20}, "Stable", before, 300.0)  # the group has left one of them
    assert fallen["t"].endswith("From: 20\tSince: 0\tPeak: 20")


ONE = broker_rows({"brokers": BROKERS["brokers"][1:]})


def test_a_broker_that_is_not_listed_is_absent_while_it_has_partitions() -> None:
    absent = with_absent(ONE, topic_rows([topic("a", 1, replicas=(1, 2, 3))]), INVENTORY.brokers)
    assert [row.split()[1:5] for row in absent.values()] == [
        ["kafka-1", "9092", "null", "unfenced"],
        ["kafka-2", "9092", "null", "absent"],
        ["-", "0", "null", "absent"],  # nobody knows where it was
    ]
    assert with_absent(ONE, topic_rows([topic("a", 1, replicas=(1,))]), INVENTORY.brokers) == ONE


def test_a_broker_is_removed_when_two_rounds_miss_it_and_the_answers_are_sure_to_be_of_all() -> None:
    after = replace(INVENTORY, brokers=ONE)
    first = with_unlisted(after, INVENTORY, is_sure=True)
    assert (first.brokers, first.unlisted) == (INVENTORY.brokers, ("2",))
    assert lines_of(INVENTORY, first, whole=False) == ["Cluster ID: xyz"]
    assert not any("kafka-2" in line for line in lines_of(INVENTORY, first, whole=True))  # nobody tells of it
    assert with_unlisted(after, first, is_sure=False) == first
    assert with_unlisted(INVENTORY, first, is_sure=True) == INVENTORY
    second = with_unlisted(after, first, is_sure=True)
    (row,) = lines_of(first, second, whole=False)[1:]
    assert row.splitlines()[1].split() == ["2", "kafka-2", "9092", "null", "removed", "broker"]


def test_a_table_of_lags_is_cut_before_the_parser_would_cut_it() -> None:
    lines = lag_table(lag_rows("g", {("a", number): 0 for number in range(2500)}, {}))
    assert [number for number, line in enumerate(lines) if line.startswith("GROUP ")] == [0, 1001, 2002]
    assert len(lines) == 2503
