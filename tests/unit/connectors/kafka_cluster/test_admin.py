"""A cluster is asked with few requests; what a broker cannot answer now is as it was; a cluster that is away is a sentence."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from kafka import TopicPartition
from kafka.errors import (
    CoordinatorLoadInProgressError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from connectors.kafka_cluster import admin, look
from connectors.kafka_cluster.admin import ClusterAsker, KafkaEndpoint
from engine.errors import SourceAway, SourceDenied, SourceError
from tests.unit.connectors.kafka_cluster.test_printing import BROKERS, topic

ALL_RIGHTS = ["DESCRIBE", "DESCRIBE_CONFIGS"]


class Offset(NamedTuple):
    offset: int


class Client:
    """Answers as kafka-python's admin client does; counts the requests."""

    def __init__(self, *topics: dict[str, Any]) -> None:
        self.topics, self.requests, self.failing = list(topics), Counter[str](), dict[str, Exception]()
        self.groups: dict[int, list[dict[str, str]]] = {1: [{"group_id": "g", "group_state": "Stable"}]}
        self.rights, self.closed = ALL_RIGHTS, False
        self.committed: dict[TopicPartition, Offset] = {}
        self.brokers: list[dict[str, Any]] = BROKERS["brokers"]
        self.end, self.without_end = 10, set[TopicPartition]()

    def _asked(self, request: str) -> None:
        self.requests[request] += 1
        if request in self.failing:
            raise self.failing[request]

    def describe_cluster(self) -> dict[str, Any]:
        self._asked("cluster")
        return {"cluster_id": "xyz", "brokers": self.brokers, "authorized_operations": self.rights}

    def describe_topics(self, names: list[str] | None = None) -> list[dict[str, Any]]:
        self._asked("topics")
        known = {topic["name"]: topic for topic in self.topics}
        missing = [{"name": name, "error_code": 3, "partitions": []} for name in names or () if name not in known]
        return missing if names else self.topics

    def describe_metadata_quorum(self) -> dict[str, Any]:
        self._asked("quorum")
        partition = {"leader_id": 1, "leader_epoch": 1, "current_voters": [{"replica_id": 1}], "observers": []}
        return {"topics": [{"partitions": [partition]}]}

    def list_groups(self, brokers: list[int]) -> list[dict[str, str]]:
        self._asked("groups")
        return self.groups[brokers[0]]

    def describe_groups(self, groups: list[str], group_coordinator_id: int) -> dict[str, Any]:
        self._asked("members")
        states = {group["group_id"]: group["group_state"] for group in self.groups[group_coordinator_id]}
        return {
            name: {"error": None, "group_state": states[name], "protocol_data": "range", "members": [{}]} for name in groups
        }

    def describe_features(self) -> dict[str, Any]:
        self._asked("features")
        return {"metadata.version": {"supported": (7, 30), "finalized": (1, 30), "finalized_epoch": 3}}

    def describe_log_dirs(self, brokers: list[int]) -> list[dict[str, Any]]:
        self._asked("log dirs")
        return [{"broker": brokers[0], "log_dirs": []}]

    def list_partition_offsets(self, places: dict[Any, Any]) -> dict[Any, Any]:
        self._asked("ends")
        if not self.without_end.isdisjoint(places):
            raise UnknownTopicOrPartitionError
        return {place: Offset(self.end) for place in places}

    def describe_configs(self, resources: list[Any], **_: Any) -> dict[str, Any]:
        self._asked("configs")
        return {}

    def list_group_offsets(self, groups: list[str]) -> dict[str, Any]:
        self._asked("offsets")
        return dict.fromkeys(groups, self.committed)

    def close(self) -> None:
        self.closed = True


def asker_of(client: Client) -> ClusterAsker:
    return ClusterAsker(KafkaEndpoint("kafka-1:9092"), _client=client)


def test_a_round_without_change_is_one_request_of_each_kind_however_many_topics_there_are() -> None:
    client = Client(*(topic(f"t-{number}", 1) for number in range(2000)))
    asker = asker_of(client)
    inventory, _ = asker.ask(None, whole=True)
    assert client.requests["configs"] == 2000 / admin.AT_ONCE + 1
    client.requests.clear()
    again, lines = asker.ask(inventory, whole=False)
    assert (again, lines) == (inventory, ["Cluster ID: xyz"])
    assert client.requests == {"cluster": 1, "topics": 1, "quorum": 1, "groups": 1}  # of the broker that is not fenced


def test_a_topic_is_gone_when_the_brokers_say_so_of_it_by_name() -> None:
    client = Client(topic("a", 1), topic("b", 1))
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.topics = client.topics[:1]
    after, lines = asker.ask(before, whole=False)
    assert lines[1:] == ["Error while executing topic command : Topic 'b' does not exist as expected"]
    assert list(after.topics) == ["a"]


def test_a_topic_that_is_missing_and_not_unknown_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(topic("a", 1), topic("b", 1))
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.topics[1] = topic("b", 1, error_code=29)
    after, lines = asker.ask(before, whole=False)
    assert (after.topics, lines) == (before.topics, ["Cluster ID: xyz"])


BEFORE_4_0 = [{name: broker[name] for name in broker if name != "is_fenced"} for broker in BROKERS["brokers"]]


def states_in(lines: Sequence[str]) -> list[str]:
    """Return the states of brokers that `lines` tell."""
    return [line.split()[-2] for line in lines if line.startswith("ID  ")]


@pytest.mark.parametrize(
    ("names", "rights", "told"),
    [
        (["__consumer_offsets"], ALL_RIGHTS, [[], ["removed"]]),
        (["orders"], ALL_RIGHTS, [[], []]),  # there are groups, but the user does not see the topic of their offsets
        (["__consumer_offsets"], ["DESCRIBE"], [[], []]),
    ],
)
def test_a_broker_before_4_0_is_removed_if_nothing_that_it_may_have_is_hidden(
    names: list[str], rights: list[str], told: list[list[str]]
) -> None:
    client = Client(*(topic(name, 1, replicas=(1,)) for name in names))
    client.brokers, client.groups[2], client.rights = BEFORE_4_0, [], rights
    asker = asker_of(client)
    inventory, _ = asker.ask(None, whole=True)
    client.brokers = BEFORE_4_0[1:]
    states = []
    for _ in range(2):
        inventory, lines = asker.ask(inventory, whole=False)
        states.append(states_in(lines))
    assert states == told


def test_a_broker_whose_topics_cannot_be_described_now_is_absent_and_not_removed() -> None:
    client = Client(topic("__consumer_offsets", 1, replicas=(1,)), topic("paid", 2, replicas=(2,)))
    client.brokers, client.groups[2] = BEFORE_4_0, []
    asker = asker_of(client)
    inventory, _ = asker.ask(None, whole=True)
    client.brokers = BEFORE_4_0[1:]
    client.topics[1] = topic("paid", 2, error_code=29)
    inventory, lines = asker.ask(inventory, whole=False)
    assert states_in(lines) == ["absent"]


def test_topics_that_are_missing_altogether_are_gone_when_they_are_so_twice() -> None:
    client = Client(topic("a", 1))
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.topics = []
    with pytest.raises(SourceAway, match="list no topic any more"):
        asker.ask(before, whole=False)
    asker._client = client
    after, lines = asker.ask(before, whole=False)
    assert (after.topics, lines[1:]) == (
        {},
        ["Error while executing topic command : Topic 'a' does not exist as expected"],
    )


def test_groups_are_not_gone_while_nobody_leads_the_topic_of_their_offsets() -> None:
    client = Client(topic("__consumer_offsets", 1))
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.topics, client.groups[1] = [topic("__consumer_offsets", -1)], []
    after, lines = asker.ask(before, whole=False)
    assert after.groups == before.groups
    assert not any("does not exist" in line for line in lines)


def test_groups_of_a_coordinator_that_starts_are_as_they_were() -> None:
    client = Client()
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.failing["groups"] = CoordinatorLoadInProgressError()
    after, lines = asker.ask(before, whole=False)
    assert (after.groups, lines) == ({"g": "Stable"}, ["Cluster ID: xyz"])


def lags_in(lines: Sequence[str]) -> dict[str, str]:
    """Return what `lines` tell of the lag of each group, without its topic, partitions and peak."""
    rows = (line.split("\t") for line in lines if line.startswith("Group: "))
    return {row[0].removeprefix("Group: "): " ".join(row[3:-1]) for row in rows}


def test_a_thousand_groups_are_asked_in_pages_and_their_members_again_when_their_state_changes() -> None:
    client = Client(topic("orders", 1, 1, -1))
    client.groups[1] = [{"group_id": f"g-{number:04}", "group_state": "Stable"} for number in range(1000)]
    client.committed = {TopicPartition("orders", number): Offset(4) for number in range(3)}
    now = [1000.0]
    asker = asker_of(client)
    asker.clock = lambda: now[0]
    inventory, lines = asker.ask(None, whole=True)
    assert (client.requests["members"], client.requests["offsets"], client.requests["ends"]) == (2, 2, 1)
    assert lags_in(lines)["g-0999"] == "Lag: 12 LargestLag: 6 Committed: 8 State: Stable From: 12 Since: 0"
    client.requests.clear()
    client.groups[1][7]["group_state"] = "Empty"
    inventory, lines = asker.ask(inventory, whole=False)
    assert client.requests == {"cluster": 1, "topics": 1, "quorum": 1, "groups": 1, "members": 1}
    assert [line.split() for line in "\n".join(lines[1:]).splitlines()] == [
        ["GROUP", "STATE"],
        ["g-0007", "Empty"],
        ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
        ["g-0007", "kafka-1:9092", "(1)", "range", "Empty", "1"],
    ]
    now[0] += 300
    client.requests.clear()
    client.committed = {TopicPartition("orders", 0): Offset(9)}
    inventory, lines = asker.ask(inventory, whole=False)
    assert (client.requests["members"], client.requests["offsets"], client.requests["ends"]) == (2, 2, 1)
    assert lags_in(lines)["g-0007"] == "Lag: 1 LargestLag: 1 Committed: 9 State: Empty From: 1 Since: 0"


def test_a_group_that_its_coordinator_lists_no_more_is_gone_and_only_then() -> None:
    client = Client()
    asker = asker_of(client)
    before, _ = asker.ask(None, whole=True)
    client.groups[1] = []
    after, lines = asker.ask(before, whole=False)
    assert (after.groups, after.members) == ({}, {})
    assert lines[1:] == ["Error: Consumer group 'g' does not exist."]


def test_lags_of_groups_that_cannot_be_asked_cost_nobody_elses() -> None:
    client = Client()
    client.groups[1] = [{"group_id": name, "group_state": "Stable"} for name in "abc"]
    client.failing["offsets"] = CoordinatorLoadInProgressError()
    _, lines = asker_of(client).ask(None, whole=True)
    assert client.requests["offsets"] == 5  # all, one half after the other, each
    assert not any("LAG" in line for line in lines)


def test_a_lag_does_not_fall_because_leaders_are_away_or_ends_cannot_be_asked() -> None:
    client = Client(topic("orders", 1, 1), topic("paid", 1))
    client.committed = {TopicPartition(*place): Offset(4) for place in (("orders", 0), ("orders", 1), ("paid", 0))}
    now = [1000.0]
    asker = asker_of(client)
    asker.clock = lambda: now[0]
    first, _ = asker.ask(None, whole=True)
    now[0] += 300
    client.topics = [topic("orders", 1, -1), topic("paid", 1)]
    client.failing["ends"] = KafkaTimeoutError()
    without, lines = asker.ask(first, whole=False)
    assert (without.lags, lags_in(lines)) == (first.lags, {})
    now[0] += 300
    del client.failing["ends"]
    client.without_end, client.end = {TopicPartition("orders", 0)}, 20
    client.topics = [topic("orders", 1, 1), topic("paid", 1)]
    after, lines = asker.ask(without, whole=False)
    assert after.lags["g"]["orders"].endswith(
        "Lag: 16\tLargestLag: 16\tCommitted: 4\tState: Stable\tFrom: 12\tSince: 300\tPeak: 16"
    )
    assert after.lags["g"]["paid"].endswith(
        "Lag: 16\tLargestLag: 16\tCommitted: 4\tState: Stable\tFrom: 6\tSince: 300\tPeak: 16"
    )


def test_rights_that_are_missing_are_named_with_the_command_that_grants_them() -> None:
    client = Client({**topic("a", 1), "authorized_operations": ["DESCRIBE"]})
    client.rights = ["DESCRIBE_CONFIGS"]
    asker = asker_of(client)
    asker.ask(None, whole=False)
    assert asker.missing_rights == (
        "the right DESCRIBE on the cluster is missing; grant it with kafka-acls.sh --add --allow-principal User:NAME"
        " --operation Describe --cluster",
        "the right DESCRIBE_CONFIGS on 1 topics, a among them, is missing; grant it with kafka-acls.sh --add --allow-principal"
        " User:NAME --operation DescribeConfigs --topic '*'",
    )


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (SaslAuthenticationFailedError(), SourceDenied, "kafka-1:9092 does not let us in; check sasl.mechanism"),
        (TopicAuthorizationFailedError(), SourceDenied, "does not allow it (TopicAuthorizationFailedError)"),
        (CoordinatorLoadInProgressError(), SourceAway, "cannot be asked (CoordinatorLoadInProgressError)"),
    ],
)
def test_a_refusal_is_a_sentence_and_the_next_round_connects_anew(
    error: Exception, kind: type[SourceError], sentence: str
) -> None:
    client = Client()
    client.failing["topics"] = error
    asker = asker_of(client)
    with pytest.raises(kind) as raised:
        asker.ask(None, whole=True)
    assert sentence in str(raised.value)
    assert client.closed
    assert asker._client is None


def test_a_cluster_that_does_not_answer_is_a_sentence_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "BOOTSTRAP_MS", 300)
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(SourceAway) as raised:
        place = f"127.0.0.1:{mute.getsockname()[1]}"
        look({"connection": {"bootstrap_servers": place}})
    what = "the addresses, and security.protocol and the credentials in options"
    assert str(raised.value) == f"no broker of {place} answers; check {what}"
    assert threading.active_count() == threads
