"""What was asked is read back: with and without stamps, from Kafka's own tools, and from rounds that tell changes only."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from engine.risks.cluster import AuditedCluster, AuditedPartition
from engine.risks.reading import read_cluster, texts_of

FIRST = """\
Cluster ID: dG9jc2luLXRlc3RzLTAwMQ
ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE
1          kafka-1                        9092       a          unfenced   broker
2          kafka-2                        9092       null       fenced     broker
ClusterId:              dG9jc2luLXRlc3RzLTAwMQ
LeaderId:               1
LeaderEpoch:            4
CurrentVoters:          [1,2,3]
CurrentObservers:       []
Topic: orders\tTopicId: 8ZOxKq2FRpyr\tPartitionCount: 2\tReplicationFactor: 2\tConfigs: a.b=compact,delete,c.d=60000
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: 2
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr:\x20
GROUP                          STATE
the billing group              Stable
late                           Empty
All configs for broker 1 are:
  min.insync.replicas=2 sensitive=false synonyms={DEFAULT_CONFIG:min.insync.replicas=1}
  log.retention.ms=null sensitive=false synonyms={}
GROUP                          TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG
the billing group              orders                         0          5               8               3
the billing group              orders                         1          2               -               -
kafka-1:9092 (id: 1 rack: a) -> (
\tProduce(0): 0 to 13
\tFetch(1): 4 to 18 [usable: 18],
)
GROUP                          TOPIC                          PARTITION  UNREAD-SINCE
the billing group              orders                         0          2026-11-20T00:00:00Z
the billing group              orders                         1          lost
{"name":"cdc","connector":{"state":"RUNNING","worker_id":"w:8083"},"tasks":[],"type":"source"}
{"name":"cdc","config":{"errors.tolerance":"all"},"type":"source"}
{"cdc":{"topics":["orders","audit"]}}
{"worker":"connect-1:8083","version":"4.3.1","commit":"c","kafka_cluster_id":"dG9jc2luLXRlc3RzLTAwMQ"}
"""


def stamped(text: str, at: str) -> list[str]:
    return [f"2026-11-26T{at}.123456000Z {line}" for line in text.splitlines()]


def read(*lines: str) -> AuditedCluster:
    return read_cluster(lines, AuditedCluster("prod"))


def test_a_whole_round_is_read() -> None:
    seen = read(*stamped(FIRST, "22:11:25"))
    assert replace(seen, at=None) == read(*FIRST.splitlines())
    assert seen.at == datetime(2026, 11, 26, 22, 11, 25, 123456, UTC)
    assert (seen.cluster_id, seen.bootstrap) == ("dG9jc2luLXRlc3RzLTAwMQ", "kafka-1:9092")
    assert {id_: broker.is_fenced for id_, broker in seen.brokers.items()} == {1: False, 2: True}
    assert {id_: broker.rack for id_, broker in seen.brokers.items()} == {1: "a", 2: ""}
    assert seen.brokers[1].settings == {"min.insync.replicas": "2", "log.retention.ms": "null"}
    assert seen.brokers[1].protocols == {"Produce(0)": "0 to 13", "Fetch(1)": "4 to 18"}
    assert seen.voters == (1, 2, 3)
    assert seen.topics["orders"].partitions == (AuditedPartition(0, (1, 2)), AuditedPartition(1, (2, 1)))
    assert seen.topics["orders"].settings == {"a.b": "compact,delete", "c.d": "60000"}
    assert {name: group.state for name, group in seen.groups.items()} == {"the billing group": "Stable", "late": "Empty"}
    first, second = seen.groups["the billing group"].lags
    assert (first.lag, first.unread_since, second.lag, second.is_lost) == (3, datetime(2026, 11, 20, tzinfo=UTC), None, True)
    assert seen.connectors["cdc"].settings == {"errors.tolerance": "all"}
    assert seen.connectors["cdc"].topics == ("audit", "orders")
    assert (seen.workers, seen.asked_connect) == ({"connect-1:8083": "4.3.1"}, True)


def test_later_rounds_change_what_they_tell() -> None:
    changes = """\
Cluster ID: dG9jc2luLXRlc3RzLTAwMQ
\tTopic: orders\tPartition: 1\tLeader: 3\tReplicas: 3,1\tIsr: 3,1
GROUP                          STATE
late                           Stable
{"error_code":404,"message":"No status found for connector cdc"}
"""
    seen = read(*stamped(FIRST, "22:11:25"), *stamped(changes, "22:11:55"))
    assert [partition.replicas for partition in seen.topics["orders"].partitions] == [(1, 2), (3, 1)]
    assert seen.groups["late"].state == "Stable"
    assert seen.connectors == {}
    gone = "Error while executing topic command : Topic 'orders' does not exist as expected"
    assert read(*FIRST.splitlines(), gone).topics == {}


def test_a_round_that_tells_everything_replaces_the_others_and_shows_how_lag_grows() -> None:
    later = FIRST.replace("Topic: orders", "Topic: bills").replace("8               3", "9               4")
    seen = read(*stamped(FIRST, "22:11:25"), *stamped(later, "23:11:25"))
    assert list(seen.topics) == ["bills"]
    (first, _) = seen.groups["the billing group"].lags
    assert (first.lag, first.earlier, first.has_moved) == (4, 3, False)
    moved = FIRST.replace("5               8", "6               9")
    seen = read(*stamped(FIRST, "22:11:25"), *stamped(moved, "22:41:25"), *stamped(moved, "23:11:25"))
    assert [lag.has_moved for lag in seen.groups["the billing group"].lags] == [True, False]


def test_a_partition_without_a_committed_offset_has_an_unknown_lag() -> None:
    seen = read(
        *FIRST.replace(
            "1          2               -               -", "1          -               8               -"
        ).splitlines()
    )
    assert [(lag.offset, lag.lag) for lag in seen.groups["the billing group"].lags] == [(5, 3), (None, None)]


def test_a_group_whose_broker_does_not_tell_its_state_is_read_by_its_lag() -> None:
    seen = read(*(line.replace("Stable", "").rstrip() if line.endswith("Stable") else line for line in FIRST.splitlines()))
    group = seen.groups["the billing group"]
    assert (group.state, [lag.lag for lag in group.lags]) == ("", [3, None])


@pytest.mark.parametrize("state", ["removed ", "absent  "])
def test_a_broker_that_is_gone_is_dropped(state: str) -> None:
    table = FIRST.splitlines()[1]
    row = FIRST.splitlines()[3].replace("fenced  ", state)
    assert list(read(*FIRST.splitlines(), table, row).brokers) == [1]
    back = row.replace(state, "unfenced")
    again = read(*FIRST.splitlines(), table, row, table, back)
    assert (again.brokers[2].is_fenced, again.bootstrap) == (False, "kafka-1:9092,kafka-2:9092")


def test_rows_that_no_check_needs_change_nothing_and_what_is_gone_is_left_out() -> None:
    more = """\
GROUP                          STATE
gone                           Stable
GROUP                          COORDINATOR (ID)               ASSIGNMENT-STRATEGY  STATE           #MEMBERS
late                           kafka-1:9092 (1)               range                Stable          2
Group: late\tTopic: orders\tPartitions: 2\tLag: 3\tLargestLag: 3\tCommitted: 7
Error: Consumer group 'gone' does not exist.
ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE
2          kafka-2                        9092       null       absent     broker
"""
    seen = read(*FIRST.splitlines(), *more.splitlines())
    assert seen == replace(read(*FIRST.splitlines()), brokers=seen.brokers, bootstrap="kafka-1:9092")
    assert list(seen.brokers) == [1]


def test_two_clusters_are_not_judged_as_one() -> None:
    seen = read("Cluster ID: one", "Cluster ID: other")
    assert seen.unseen == ("the lines are of two clusters, one and other; audit each by itself",)


def test_other_text_changes_nothing() -> None:
    noise = ["", "{", "[]", '{"name": 5, "config": {}}', '{"a": {"topics": 3}}', "Topic: x Partition: y", "  a=b", "\tx(1): 2"]
    assert read(*noise) == AuditedCluster("prod")
    assert list(texts_of([b"\xff"])) == ["\ufffd"]
    assert read(*FIRST.splitlines(), *noise).topics.keys() == {"orders"}
