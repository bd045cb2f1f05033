"""What an audit asks a Kafka cluster in addition to a whole round: requests that only read too.

    ApiVersions (each broker)             which requests it takes, as kafka-broker-api-versions.sh prints them
    ListOffsets by time (each leader)     since when the oldest record that a group has not read is there
    OffsetFetch                           of groups without committed offsets: whether these may be seen

The rows of the last two have a layout of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import AuthorizationError, KafkaError
from kafka.protocol.api_key import ApiKey
from msgspec import Struct

from connectors.kafka_cluster.printing import ClusterInventory
from engine.risks.cluster import AuditedCluster
from engine.risks.reading import LOST, read_cluster

_UNREAD = "GROUP                          TOPIC                          PARTITION  UNREAD-SINCE"
_SHARES = (0.5, 1, 2, 4, 8)  # of what a topic keeps: at these ages it is looked whether an unread record is older


class _Unread(Struct, frozen=True):
    """Where a group is in a partition with records that it has not read; `kept_ms` is for how long they are kept, None for
    ever."""

    group: str
    place: TopicPartition
    offset: int
    kept_ms: int | None


def survey(client: Any, inventory: ClusterInventory, lines: Sequence[str], now: datetime) -> tuple[list[str], list[str]]:
    """Return lines about the requests that brokers take and about unread records, and sentences about what cannot be seen.

    Args:
        lines: those of a whole round.
    """
    cluster = read_cluster((row for text in lines for row in text.split("\n")), AuditedCluster())
    protocols = [text for row in inventory.brokers.values() if (text := _protocols(client, row))]
    with_offsets = {name for name, group in cluster.groups.items() if group.lags}
    hidden = list(_hidden(client, [group for group in inventory.groups if group not in with_offsets]))
    try:
        rows = list(_rows(client, list(_unread(cluster)), now))
    except KafkaError:  # a partition without a leader, or a topic that has just gone
        rows = []
        hidden.append("how old unread records are cannot be asked for now, so retention is not judged")
    return [*protocols, *([_UNREAD, *rows] if rows else [])], hidden


def _protocols(client: Any, row: str) -> str:
    """Return the requests that a broker takes; empty when it has no answer."""
    id_, host, port, rack, state = row.split()[:5]
    try:
        versions = client.get_broker_version_data(int(id_)).api_versions if state != "fenced" else {}
    except KafkaError:
        return ""
    rows = (f"\t{_request(key)}({key}): {least} to {most}" for key, (least, most) in sorted(versions.items()))
    return "\n".join((f"{host}:{port} (id: {id_} rack: {rack}) -> (", *rows, ")")) if versions else ""


def _request(key: int) -> str:
    return ApiKey(key).name if key in ApiKey._value2member_map_ else "Unknown"


def _unread(cluster: AuditedCluster) -> Iterator[_Unread]:
    """Yield where groups are behind in topics that delete records."""
    for group in cluster.groups.values():
        for lag in group.lags:
            topic = cluster.topics.get(lag.topic)
            if lag.lag and lag.offset is not None and topic is not None and topic.deletes_records:
                place = TopicPartition(lag.topic, lag.partition)
                yield _Unread(group.name, place, lag.offset, cluster.retention_ms(topic))


def _rows(client: Any, unread: Sequence[_Unread], now: datetime) -> Iterator[str]:
    """Yield a row for each place where a group may lose records, or has lost some. Raises KafkaError."""
    firsts = _offsets(client, {at.place: OffsetSpec.EARLIEST for at in unread})
    lost = {at for at in unread if at.offset < firsts[at.place]}
    since = dict[_Unread, datetime]()
    behind = [at for at in unread if at.kept_ms is not None and at not in lost]
    for share in _SHARES:
        times = {at.place: now - timedelta(milliseconds=share * (at.kept_ms or 0)) for at in behind}
        offsets = _offsets(client, {place: max(0, round(at.timestamp() * 1000)) for place, at in times.items()})
        behind = [at for at in behind if not 0 <= offsets[at.place] <= at.offset]  # -1: all records are older
        since |= {at: times[at.place] for at in behind}
    for at in unread:
        value = LOST if at in lost else f"{since[at].astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at in since else ""
        if value:
            yield f"{at.group:<30} {at.place.topic:<30} {at.place.partition:<10} {value}"


def _offsets(client: Any, specs: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
    answer = client.list_partition_offsets(dict(specs)) if specs else {}
    return {place: entry.offset for place, entry in answer.items()}


def _hidden(client: Any, groups: Sequence[str]) -> Iterator[str]:
    for group in groups:
        try:
            client.list_group_offsets([group])
        except AuthorizationError:
            yield f"the right DESCRIBE on group {group} is missing, so its lag is not judged"
        except KafkaError:
            yield f"the offsets of group {group} cannot be asked for now, so its lag is not judged"
