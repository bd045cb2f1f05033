"""An audit asks in addition which requests brokers take, and how old unread records are; what it may not see is a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import GroupAuthorizationFailedError, KafkaTimeoutError, UnknownTopicOrPartitionError

from connectors.kafka_cluster.printing import ClusterInventory, lag_rows, lag_table, lines_of
from connectors.kafka_cluster.surveying import survey

NOW = datetime(2026, 11, 26, 22, tzinfo=UTC)
VALUES = ("log.retention.hours=48", "log.retention.ms=null")
KEPT = "\n".join(("All configs for broker 1 are:", *(f"  {value} sensitive=false synonyms={{}}" for value in VALUES)))
ROW = "1          kafka-1                        9092       a          unfenced   broker"
FENCED = "2          kafka-2                        9092       null       fenced     broker"

PARTITION = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1"
TOPICS = {"orders": ("Topic: orders\tPartitionCount: 1\tReplicationFactor: 1", PARTITION)}


class Client:
    """A cluster in whose partitions the record with offset n was written n hours after `begin`, up to its end, 100."""

    def __init__(self, begin: datetime, first: int = 0) -> None:
        self.begin, self.first = begin, first
        self.failure: Exception | None = None
        self.asked: list[Mapping[TopicPartition, int]] = []

    def get_broker_version_data(self, id_: int) -> Any:
        if id_ == 3:
            raise KafkaTimeoutError
        return SimpleNamespace(api_versions={0: (0, 13), 1: (4, 18), 9999: (0, 0)})

    def list_partition_offsets(self, specs: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Any]:
        if self.failure is not None:
            raise self.failure
        self.asked.append(specs)
        return {place: SimpleNamespace(offset=self._offset(at)) for place, at in specs.items()}

    def _offset(self, at: int) -> int:
        if at == OffsetSpec.EARLIEST:
            return self.first
        hours = (datetime.fromtimestamp(at / 1000, UTC) - self.begin) / timedelta(hours=1)
        number = max(self.first, -int(-hours // 1))
        return number if number < 100 else -1

    def list_group_offsets(self, groups: list[str]) -> Mapping[str, Any]:
        if groups == ["secret"]:
            raise GroupAuthorizationFailedError
        return {}


def surveyed(client: Client, offset: int, settings: str = "", kept: str = KEPT) -> tuple[list[str], list[str]]:
    inventory = ClusterInventory("xyz", topics=TOPICS, settings={"orders": settings}, groups={"billing": "Stable"})
    lags = lag_table(lag_rows("billing", {("orders", 0): offset}, {("orders", 0): 100}))
    return survey(client, inventory, [*lines_of(None, inventory, whole=True), kept, *lags], NOW)


@pytest.mark.parametrize(
    ("offset", "settings", "since"),
    [
        (90, "", None),
        (70, "", "2026-11-25T22:00:00Z"),  # 30 h old: older than 24 h, not than 48 h
        (40, "", "2026-11-24T22:00:00Z"),  # 60 h
        (70, "retention.ms=-1", None),
        (70, "a=b,retention.ms=3600000", "2026-11-26T14:00:00Z"),  # at most eight times what is kept is looked back
    ],
)
def test_unread_records_that_are_older_than_half_of_what_is_kept_have_a_row(
    offset: int, settings: str, since: str | None
) -> None:
    client = Client(NOW - timedelta(hours=100))
    lines, hidden = surveyed(client, offset, settings)
    assert [line.split()[-1] for line in lines[1:]] == ([since] if since else [])
    assert hidden == []


def test_records_that_were_deleted_before_they_were_read_are_lost() -> None:
    lines, _ = surveyed(Client(NOW - timedelta(hours=100), first=80), 70)
    assert lines[1].split() == ["billing", "orders", "0", "lost"]


def test_a_topic_that_is_compacted_only_deletes_nothing_and_is_not_asked_about() -> None:
    client = Client(NOW - timedelta(hours=500), first=80)
    assert surveyed(client, 70, "cleanup.policy=compact") == ([], [])
    assert client.asked == []
    lines, _ = surveyed(client, 70, "cleanup.policy=compact,delete")
    assert lines[1].split()[-1] == "lost"


def test_brokers_that_keep_records_for_ever_delete_none_by_age() -> None:
    assert surveyed(Client(NOW - timedelta(hours=500)), 70, kept=KEPT.replace("ms=null", "ms=-1")) == ([], [])


def test_old_records_of_a_topic_that_nobody_writes_any_more_count() -> None:
    lines, _ = surveyed(Client(NOW - timedelta(hours=500)), 99)
    assert lines[1].split()[-1] == "2026-11-10T22:00:00Z"


def test_a_group_that_has_read_everything_costs_no_request() -> None:
    client = Client(NOW)
    assert surveyed(client, 100) == ([], [])
    assert client.asked == []


def test_what_cannot_be_asked_is_a_sentence() -> None:
    client = Client(NOW)
    client.failure = UnknownTopicOrPartitionError()
    assert surveyed(client, 50)[1] == ["how old unread records are cannot be asked for now, so retention is not judged"]
    inventory = ClusterInventory("xyz", groups={"secret": "Stable", "new": "Empty"})
    assert survey(Client(NOW), inventory, [], NOW) == (
        [],
        ["the right DESCRIBE on group secret is missing, so its lag is not judged"],
    )


def test_the_requests_of_brokers_are_printed_as_the_tool_does() -> None:
    away = ROW.replace("1          kafka-1", "3          kafka-3")
    lines, _ = survey(Client(NOW), ClusterInventory("xyz", {"1": ROW, "2": FENCED, "3": away}), [], NOW)
    assert lines == [
        "kafka-1:9092 (id: 1 rack: a) -> (\n\tProduce(0): 0 to 13\n\tFetch(1): 4 to 18\n\tUnknown(9999): 0 to 0\n)"
    ]
