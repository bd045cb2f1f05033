"""From two inventories of a Kafka cluster to lines, in the layouts of Kafka's own tools. Pure.

kafka-cluster.sh cluster-id, list-endpoints           org.apache.kafka.tools.ClusterTool
kafka-metadata-quorum.sh describe --status            org.apache.kafka.tools.MetadataQuorumCommand
kafka-features.sh describe                            org.apache.kafka.tools.FeatureCommand
kafka-topics.sh --describe                            org.apache.kafka.tools.TopicCommand
kafka-configs.sh --describe                           kafka.admin.ConfigCommand
kafka-consumer-groups.sh --list --state, --describe   org.apache.kafka.tools.consumer.group.ConsumerGroupCommand

What no tool prints has a layout of the same kind: the lag of a group by topic, the partitions by log directory. Each row that
the picture is made of stands below a header of its own, because a row is read by itself.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

Answer = Mapping[str, Any]  # of kafka-python's admin client
Rows = tuple[str, ...]
TopicOffsets = Mapping[tuple[str, int], int]  # an offset of each partition, by topic and number

OVERRIDES = ("DYNAMIC_TOPIC_CONFIG",)
_ENDPOINTS = "ID         HOST                           PORT       RACK       STATE      ENDPOINT_TYPE"
_STATES = "GROUP                          STATE"
_MEMBERS = "GROUP                          COORDINATOR (ID)               ASSIGNMENT-STRATEGY  STATE           #MEMBERS"
FALLEN = 0.8  # of its peak: a lag that is smaller has fallen
_RISING = re.compile(r"From: (\d+)\tSince: (\d+)\tPeak: (\d+)$")
_REPLICAS = re.compile(r"\tReplicas: ([\d,]+)\t")
_LAG = re.compile(r"\tLag: (\d+)\t")
LAG_ROWS = 1000  # in one table: the parser reads 256 KiB of one
_LAGS = "GROUP                          TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"


class ClusterInventory(Struct, frozen=True):
    """What a Kafka cluster holds, as the rows that are printed of it.

    Attributes:
        brokers: the row of each broker, by id.
        unlisted: the brokers that are listed no more, and not yet sure to be removed; their rows are of an earlier round.
        quorum: the leader, voters and observers of the controllers; empty without KRaft, or the right to see them.
        topics: the rows of each topic: the summary without its settings, then a row a partition.
        settings: what is set for each topic itself, as the summary prints it; known of the topics that were asked about.
        groups: the state of each consumer group.
        members: the row of each group that its coordinator describes.
        lags: the row of each topic that a group has committed offsets of, by group and topic.
        features: the row of each feature.
    """

    cluster_id: str
    brokers: Mapping[str, str] = {}
    quorum: str = ""
    topics: Mapping[str, Rows] = {}
    settings: Mapping[str, str] = {}
    groups: Mapping[str, str] = {}
    members: Mapping[str, str] = {}
    lags: Mapping[str, Mapping[str, str]] = {}
    features: Mapping[str, str] = {}
    unlisted: tuple[str, ...] = ()


def broker_rows(cluster: Answer) -> Mapping[str, str]:
    """Return the row of each broker, by id, in order. Fenced brokers are listed by brokers since 4.0."""
    brokers = sorted(cluster["brokers"], key=lambda broker: int(broker["broker_id"]))
    return {str(broker["broker_id"]): _endpoint(broker) for broker in brokers}


def with_absent(brokers: Mapping[str, str], topics: Mapping[str, Rows], before: Mapping[str, str]) -> Mapping[str, str]:
    """Return the rows of brokers with those that are not listed although partitions are assigned to them: brokers before 4.0 do
    not list one that is away.

    Args:
        topics: the rows of all topics.
        before: the rows of the round before.
    """
    lists = (match[1] for rows in topics.values() for row in rows[1:] if (match := _REPLICAS.search(row)))
    assigned = {id_ for ids in set(lists) for id_ in ids.split(",")}
    unknown = _endpoint({"broker_id": "?", "host": "-", "port": 0, "is_fenced": True})
    absent = {id_: before.get(id_, unknown.replace("?", id_, 1)) for id_ in assigned - brokers.keys()}
    return {**brokers, **{id_: _with_state(row, "absent") for id_, row in sorted(absent.items())}}


def with_unlisted(after: ClusterInventory, before: ClusterInventory, is_sure: bool) -> ClusterInventory:
    """Return the inventory with the brokers of `before` that are missing in it, unless they were missing in `before` already
    and the answers are sure to be about all brokers and partitions."""
    missing = sorted(before.brokers.keys() - after.brokers.keys())
    unlisted = tuple(id_ for id_ in missing if not (is_sure and id_ in before.unlisted))
    return replace(after, brokers={**after.brokers, **{id_: before.brokers[id_] for id_ in unlisted}}, unlisted=unlisted)


def topic_rows(topics: Sequence[Answer]) -> Mapping[str, Rows]:
    """Return the rows of each topic by name, in order; topics that a broker has no answer about are left out."""
    readable = (topic for topic in topics if not topic["error_code"] and topic["partitions"])
    return {topic["name"]: tuple(_topic(topic)) for topic in sorted(readable, key=lambda topic: str(topic["name"]))}


def quorum_row(quorum: Answer) -> str:
    """Return leader, epoch, voters and observers of the controllers."""
    (partition,) = quorum["topics"][0]["partitions"]
    voters, observers = ([replica["replica_id"] for replica in partition[key]] for key in ("current_voters", "observers"))
    return "\n".join(
        (
            f"LeaderId:               {partition['leader_id']}",
            f"LeaderEpoch:            {partition['leader_epoch']}",
            f"CurrentVoters:          [{_ids(voters)}]",
            f"CurrentObservers:       [{_ids(observers)}]",
        )
    )


def settings_of(configs: Mapping[str, Answer]) -> str:
    """Return the settings of a topic that are set for itself, as the summary prints them."""
    return ",".join(
        f"{name}={entry['value']}" for name, entry in sorted(configs.items()) if entry["config_source"] in OVERRIDES
    )


def lines_of(before: ClusterInventory | None, after: ClusterInventory, whole: bool) -> list[str]:
    """Return the lines of what differs between two inventories, or of all of `after` if `whole`. The first one names the
    cluster, and is always there."""
    old = before if before is not None and not whole else ClusterInventory("")
    lines = [f"Cluster ID: {after.cluster_id}"]
    listed = {id_: row for id_, row in after.brokers.items() if id_ not in after.unlisted}
    lines += _each(_ENDPOINTS, [row for id_, row in listed.items() if old.brokers.get(id_) != row])
    removed = [_with_state(row, "removed") for id_, row in (before or old).brokers.items() if id_ not in after.brokers]
    lines += _each(_ENDPOINTS, removed)
    lines += [row for name, row in after.features.items() if old.features.get(name) != row]
    if after.quorum and after.quorum != old.quorum:
        lines.append(f"ClusterId:              {after.cluster_id}\n{after.quorum}")
    for name, rows in after.topics.items():
        lines += _changed(rows, old.topics.get(name, ()), after.settings.get(name, ""), old.settings.get(name, ""))
    changed = [f"{group:<30} {state}" for group, state in sorted(after.groups.items()) if old.groups.get(group) != state]
    lines += _table(_STATES, changed)
    lines += _each(_MEMBERS, [row for group, row in after.members.items() if old.members.get(group) != row])
    for group, rows_of in after.lags.items():
        lines += [row for topic, row in rows_of.items() if old.lags.get(group, {}).get(topic) != row]
    return lines


def gone_topics(before: ClusterInventory | None, after: ClusterInventory) -> list[str]:
    """Return the topics that were there before and are not after, in order."""
    return [] if before is None else sorted(before.topics.keys() - after.topics.keys())


def gone_line(topic: str) -> str:
    """Return the line for a topic that the brokers do not know any more."""
    return f"Error while executing topic command : Topic '{topic}' does not exist as expected"


def gone_group(group: str) -> str:
    """Return the line for a group that its coordinator does not list any more."""
    return f"Error: Consumer group '{group}' does not exist."


def member_row(group: str, answer: Answer, broker: int, address: str, state: str) -> str:
    """Return the row of a group that its coordinator, `broker`, describes."""
    strategy = answer.get("protocol_data") or "-"
    place = f"{address} ({broker})"
    return f"{group:<30} {place:<30} {strategy:<20} {answer['group_state'] or state:<15} {len(answer['members'])}"


def log_dir_lines(broker: int, dirs: Sequence[Answer]) -> Iterator[str]:
    """Yield the partitions in each log directory of a broker that has several, LAG_ROWS at most in a line."""
    for entry in dirs if len(dirs) > 1 else ():
        names = sorted(f"{t['name']}-{p['partition_index']}" for t in entry["topics"] for p in t["partitions"])
        for part, at in enumerate(range(0, max(1, len(names)), LAG_ROWS)):
            listed = ",".join(names[at : at + LAG_ROWS]) or "-"
            yield f"Broker: {broker}\tLogDir: {entry['log_dir']}\tPart: {part}\tPartitions: {listed}"


def broker_settings(id_: str, configs: Mapping[str, Answer]) -> list[str]:
    """Return the settings of a broker, each with the sources of its value, below a heading of its own."""
    return [
        f"All configs for broker {id_} are:\n"
        f"  {name}={_shown(entry)} sensitive={str(entry['is_sensitive']).lower()} synonyms={{{_synonyms(entry)}}}"
        for name, entry in sorted(configs.items())
    ]


def lag_rows(group: str, committed: TopicOffsets, ends: TopicOffsets) -> list[str]:
    """Return a row for each partition that a group has committed an offset of, with its lag; `-` where the end is unknown."""
    return [_lag_row(group, *at, offset, ends.get(at)) for at, offset in sorted(committed.items())]


def lag_table(rows: Sequence[str]) -> list[str]:
    """Return `rows` below their header, which comes again after every LAG_ROWS rows; nothing without rows."""
    tables = (_table(_LAGS, rows[at : at + LAG_ROWS]) for at in range(0, len(rows), LAG_ROWS))
    return [line for table in tables for line in table]


def lag_of_topics(
    group: str,
    committed: TopicOffsets,
    ends: TopicOffsets,
    state: str = "-",
    before: Mapping[str, str] | None = None,
    elapsed_s: float = 0.0,
) -> Mapping[str, str]:
    """Return a row for each topic that a group has committed offsets of, by topic: its lag in all and in the worst partition,
    and since when it has not fallen by a fifth. Where an end is unknown, the lag of the others is the least that it can be: it
    may have risen, but not fallen, so a row that would say so is as before; without one, a topic of which no end is known is
    left out.

    Args:
        before: the rows of `elapsed_s` ago.
    """
    lags: dict[str, list[tuple[int, int]]] = {}
    for at, offset in sorted(committed.items()):
        lags.setdefault(at[0], []).extend([(max(0, ends[at] - offset), offset)] if at in ends else [])
    unknown = {topic for topic, partition in committed if (topic, partition) not in ends}
    rows = {}
    for topic, partitions in lags.items():
        lag = sum(of_partition for of_partition, _ in partitions)
        row_before = _LAG.search((before or {}).get(topic, "")) if topic in unknown else None
        if row_before is not None and lag <= int(row_before[1]):
            rows[topic] = row_before.string
            continue
        if not partitions:
            continue
        of_partitions, offsets = zip(*partitions, strict=True)
        numbers = f"Partitions: {len(partitions)}\tLag: {lag}\tLargestLag: {max(of_partitions)}\tCommitted: {sum(offsets)}"
        rising = _rising(lag, (before or {}).get(topic, ""), elapsed_s)
        rows[topic] = f"Group: {group}\tTopic: {topic}\t{numbers}\tState: {state or '-'}\t{rising}"
    return rows


def _rising(lag: int, before: str, elapsed_s: float) -> str:
    """Return since when a lag has not fallen to FALLEN of its peak, in seconds, with what it was then, and the peak."""
    match = _RISING.search(before)
    begin, since_s, peak = map(int, match.groups()) if match else (0, 0, 0)
    if match is None or lag == 0 or begin == 0 or lag < FALLEN * peak:
        return f"From: {lag}\tSince: 0\tPeak: {lag}"
    return f"From: {begin}\tSince: {since_s + int(elapsed_s)}\tPeak: {max(lag, peak)}"


def _table(header: str, rows: Sequence[str]) -> list[str]:
    return [header, *rows] if rows else []


def _each(header: str, rows: Sequence[str]) -> list[str]:
    """Return each row below a header of its own: a row is read by itself."""
    return [f"{header}\n{row}" for row in rows]


def _with_state(row: str, state: str) -> str:
    """Return the row of a broker in another state."""
    return re.sub(r"(?:unfenced|fenced|absent) +broker$", f"{state:<10} broker", row)


def _changed(rows: Rows, old_rows: Rows, settings: str, old_settings: str) -> Iterator[str]:
    """Yield the summary of a topic, if anything of it has changed, and the partitions that have."""
    changed = [row for row in rows[1:] if row not in old_rows]
    if changed or rows[0] not in old_rows or settings != old_settings:
        yield f"{rows[0]}\tConfigs: {settings}"
        yield from changed


def _endpoint(broker: Answer) -> str:
    state = "fenced" if broker.get("is_fenced") else "unfenced"
    host, rack = broker["host"], broker.get("rack")
    return f"{broker['broker_id']:<10} {host:<30} {broker['port']:<10} {rack or 'null':<10} {state:<10} broker"


def _topic(topic: Answer) -> Iterator[str]:
    name, partitions = topic["name"], sorted(topic["partitions"], key=lambda partition: int(partition["partition_index"]))
    id_ = f"TopicId: {_id(topic['topic_id'])}\t" if topic.get("topic_id") else ""
    copies = len(partitions[0]["replica_nodes"])
    yield f"Topic: {name}\t{id_}PartitionCount: {len(partitions)}\tReplicationFactor: {copies}"
    for partition in partitions:
        leader = partition["leader_id"] if partition["leader_id"] >= 0 else "none"
        replicas, isr = _ids(partition["replica_nodes"]), _ids(sorted(partition["isr_nodes"]))
        yield f"\tTopic: {name}\tPartition: {partition['partition_index']}\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}"


def _id(topic_id: str) -> str:
    """Return the id of a topic as Kafka prints it: URL-safe Base64 without padding."""
    return urlsafe_b64encode(UUID(str(topic_id)).bytes).rstrip(b"=").decode()


def _ids(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _shown(entry: Answer) -> str:
    return "null" if entry["is_sensitive"] or entry["value"] is None else str(entry["value"])


def _synonyms(entry: Answer) -> str:
    synonyms = () if entry["is_sensitive"] else entry.get("synonyms") or ()
    return ", ".join(f"{synonym['source']}:{synonym['name']}={synonym['value']}" for synonym in synonyms)


def _lag_row(group: str, topic: str, partition: int, offset: int, end: int | None) -> str:
    lag = "-" if end is None else max(0, end - offset)
    return f"{group:<30} {topic:<30} {partition:<10} {offset:<15} {'-' if end is None else end:<15} {lag}"
