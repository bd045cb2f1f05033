"""Reads what a cluster was told of, line by line, into an AuditedCluster. Pure.

The lines are those of the sources that ask (types kafka-cluster and connect), with or without the time before each, so a
record of them, or output of Kafka's own tools, reads the same. A later line replaces an earlier one; a round that tells
everything replaces all earlier rounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from engine.codec import foreign
from engine.model.pictures import assignments
from engine.risks.cluster import (
    AuditedBroker,
    AuditedCluster,
    AuditedConnector,
    AuditedGroup,
    AuditedPartition,
    AuditedTopic,
    GroupLag,
    number,
)

_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6})\d*Z ")
_TABLES = {
    "brokers": re.compile(r"ID +HOST +PORT\b"),
    "groups": re.compile(r"GROUP +STATE\b|GROUP +TYPE +STATE\b"),
    "lags": re.compile(r"GROUP +TOPIC +PARTITION +CURRENT-OFFSET\b"),
    "unread": re.compile(r"GROUP +TOPIC +PARTITION +UNREAD-SINCE\b"),
    "": re.compile(r"GROUP +COORDINATOR \(ID\)|(?:Feature|Group|Broker): "),  # what no check needs
    "quorum": re.compile(r"ClusterId: "),
    "settings": re.compile(r"All configs for broker (?P<of>\d+) are:"),
    "protocols": re.compile(r"\S+ \(id: (?P<of>\d+) rack: .*-> \("),
}
_CLUSTER_ID = re.compile(r"Cluster ID: (\S+)")
_TOPIC = re.compile(
    r"Topic: ?(\S+)\s+(?:TopicId: ?\S+\s+)?PartitionCount: ?\d+\s+ReplicationFactor: ?\d+\s*(?:Configs: ?(.*))?$"
)
_PARTITION = re.compile(r"\s*Topic: (\S+)\s+Partition: (\d+)\s+Leader: \S+\s+Replicas: ([\d,]+)\s+Isr:")
_GONE_GROUP = re.compile(r"Error: Consumer group '(.*)' does not exist\.")
_GONE = re.compile(r"Error while executing topic command : Topic '(.*)' does not exist as expected")
_BROKER_ROW = re.compile(r"(\d+) +(\S+) +(\d+) +(\S+) +(\S+) +broker\b")
_SETTING_ROW = re.compile(r"  ([\w.]+)=(.*) sensitive=\w+ synonyms=\{.*\}$")
_PROTOCOL_ROW = re.compile(r"\t(\w+\(\d+\)): (.*?)(?: \[usable: .*\])?,?$")
_PLACE = r"(?P<group>.+?) +(?P<topic>[\w.-]+) +(?P<partition>\d+) +"
_LAG_ROW = re.compile(_PLACE + r"(?P<offset>\d+|-) +(?:\d+|-) +(?P<lag>\d+|-)(?:\s|$)", re.ASCII)
_UNREAD_ROW = re.compile(_PLACE + r"(?P<since>\S+)$", re.ASCII)
_GROUP_ROW = re.compile(r"(\S.*?) +(?:(?:Consumer|Classic|Share|Streams) +)?(\w+)$")
_NO_STATUS = re.compile(r"No status found for connector (.*)")
_VOTERS = re.compile(r"CurrentVoters: +\[(.*)\]")
_VOTER = re.compile(r'"id": ?(\d+)|(?:^|, ?)(\d+)')
LOST = "lost"  # instead of a time: records were deleted before they were read


def read_cluster(lines: Iterable[str], base: AuditedCluster) -> AuditedCluster:
    """Return `base` with everything that `lines` tell."""
    memory = _ClusterMemory()
    for stamp, round_ in groupby(map(_parted, lines), key=lambda parted: parted[0]):
        memory.take(_time(stamp), [text for _, text in round_])
    return memory.cluster(base)


def _parted(line: str) -> tuple[str, str]:
    match = _STAMP.match(line)
    return (match[1], line[match.end() :]) if match else ("", line)


def _time(stamp: str) -> datetime | None:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC) if stamp else None


class _ClusterMemory:
    """What is known after the lines so far."""

    def __init__(self) -> None:
        self.at: datetime | None = None
        self.cluster_id = ""
        self.brokers: dict[int, AuditedBroker] = {}
        self.voters: tuple[int, ...] = ()
        self.partitions: dict[str, dict[int, AuditedPartition]] = {}
        self.topic_settings: dict[str, Mapping[str, str]] = {}
        self.states: dict[str, str] = {}
        self.lags: dict[str, dict[tuple[str, int], GroupLag]] = {}
        self.connectors: dict[str, AuditedConnector] = {}
        self.workers: dict[str, str] = {}
        self.mixed = ""  # a sentence, if the lines are of several clusters
        self._table, self._of = "", 0

    def take(self, at: datetime | None, texts: list[str]) -> None:
        """Take the lines of one round. One that tells the settings of brokers tells everything else of the cluster too."""
        self.at = max(filter(None, (at, self.at)), default=None)
        if any(_TABLES["settings"].match(text) for text in texts):
            self.brokers, self.partitions, self.topic_settings, self.states = {}, {}, {}, {}
        self._table = ""
        for text in texts:
            self._take(text)

    def _take(self, text: str) -> None:
        if text.startswith(("{", "[")):
            self._table = ""
            self._take_document(text)
            return
        for table, header in _TABLES.items():
            if match := header.match(text):
                self._table, self._of = table, int(match.groupdict().get("of") or 0)
                return
        for pattern, take in _SINGLE:
            if match := pattern.match(text):
                self._table = ""
                take(self, *match.groups())
                return
        if row := _ROWS.get(self._table):
            row(self, text)

    def _take_topic(self, name: str, settings: str | None) -> None:
        self.partitions.setdefault(name, {})
        self.topic_settings[name] = dict(assignments(settings.strip())) if settings else {}

    def _take_partition(self, topic: str, partition: str, replicas: str) -> None:
        ids = tuple(int(id_) for id_ in replicas.split(",") if id_)
        self.partitions.setdefault(topic, {})[int(partition)] = AuditedPartition(int(partition), ids)

    def _take_gone(self, topic: str) -> None:
        self.partitions.pop(topic, None)
        self.topic_settings.pop(topic, None)

    def _take_gone_group(self, group: str) -> None:
        self.states.pop(group, None)

    def _take_id(self, cluster_id: str) -> None:
        if self.cluster_id not in ("", cluster_id):
            self.mixed = f"the lines are of two clusters, {self.cluster_id} and {cluster_id}; audit each by itself"
        self.cluster_id = cluster_id

    def _take_broker(self, text: str) -> None:
        if match := _BROKER_ROW.match(text):
            id_, host, port, rack = int(match[1]), match[2], match[3], match[4]
            if match[5] in ("absent", "removed"):
                self.brokers.pop(id_, None)
                return
            broker = self.brokers.get(id_, AuditedBroker(id_, ""))
            self.brokers[id_] = replace(
                broker, address=f"{host}:{port}", rack="" if rack == "null" else rack, is_fenced=match[5] == "fenced"
            )

    def _take_quorum(self, text: str) -> None:
        if match := _VOTERS.match(text):
            self.voters = tuple(int(first or second) for first, second in _VOTER.findall(match[1]))

    def _take_setting(self, text: str) -> None:
        if match := _SETTING_ROW.match(text):
            broker = self.brokers.get(self._of, AuditedBroker(self._of, ""))
            self.brokers[self._of] = replace(broker, settings={**broker.settings, match[1]: match[2]})

    def _take_protocol(self, text: str) -> None:
        if match := _PROTOCOL_ROW.match(text):
            broker = self.brokers.get(self._of, AuditedBroker(self._of, ""))
            self.brokers[self._of] = replace(broker, protocols={**broker.protocols, match[1]: match[2]})

    def _take_group(self, text: str) -> None:
        if match := _GROUP_ROW.match(text):
            self.states[match[1]] = match[2]

    def _take_lag(self, text: str) -> None:
        if match := _LAG_ROW.match(text):
            place, offset, lag = (match["topic"], int(match["partition"])), number(match["offset"]), number(match["lag"])
            self.states.setdefault(match["group"], "")  # brokers before 2.6 list no states
            lags = self.lags.setdefault(match["group"], {})
            before = lags.get(place)
            earlier = None if before is None else before.lag if before.earlier is None else before.earlier
            has_moved = before is not None and (before.has_moved or offset != before.offset)
            lags[place] = GroupLag(*place, offset, lag, earlier, has_moved=has_moved)

    def _take_unread(self, text: str) -> None:
        if match := _UNREAD_ROW.match(text):
            place, lags = (match["topic"], int(match["partition"])), self.lags.get(match["group"], {})
            if place in lags:
                is_lost = match["since"] == LOST
                since = None if is_lost else datetime.fromisoformat(match["since"])
                lags[place] = replace(lags[place], unread_since=since, is_lost=is_lost)

    def _take_document(self, text: str) -> None:
        try:
            document = foreign(text.encode())
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict):
            self._take_parts(document)

    def _take_parts(self, document: Mapping[str, Any]) -> None:
        name = document.get("name")
        if isinstance(name, str) and ("connector" in document or "config" in document):
            connector = self.connectors.get(name, AuditedConnector(name, ""))
            settings = document.get("config")
            if isinstance(settings, dict):
                connector = replace(connector, settings={str(key): str(value) for key, value in settings.items()})
            self.connectors[name] = replace(connector, kind=str(document.get("type") or connector.kind))
        elif "version" in document and "kafka_cluster_id" in document:
            self.workers[str(document.get("worker", ""))] = str(document["version"])
        elif match := _NO_STATUS.fullmatch(str(document.get("message", ""))):
            self.connectors.pop(match[1], None)
        else:
            self._take_topics(document)

    def _take_topics(self, document: Mapping[str, Any]) -> None:
        """Take an answer of GET /connectors/NAME/topics."""
        for name, part in document.items():
            topics = part.get("topics") if isinstance(part, dict) else None
            if isinstance(topics, list) and name in self.connectors:
                used = tuple(sorted(str(topic) for topic in topics))
                self.connectors[name] = replace(self.connectors[name], topics=used)

    def cluster(self, base: AuditedCluster) -> AuditedCluster:
        """Return what is known; lags of groups that are not there any more are left out."""
        topics = {
            name: AuditedTopic(name, tuple(part for _, part in sorted(parts.items())), self.topic_settings.get(name, {}))
            for name, parts in sorted(self.partitions.items())
            if parts
        }
        groups = {
            name: AuditedGroup(name, state, tuple(lag for _, lag in sorted(self.lags.get(name, {}).items())))
            for name, state in sorted(self.states.items())
        }
        brokers = dict(sorted(self.brokers.items()))
        addresses = (broker.address for broker in brokers.values() if not broker.is_fenced)
        return replace(
            base,
            cluster_id=self.cluster_id,
            at=self.at,
            bootstrap=base.bootstrap or ",".join(address for address in addresses if address),
            brokers=brokers,
            voters=self.voters,
            topics=topics,
            groups=groups,
            connectors=dict(sorted(self.connectors.items())),
            workers=self.workers,
            unseen=(*base.unseen, self.mixed) if self.mixed else base.unseen,
            asked_connect=base.asked_connect or bool(self.workers),
        )


_SINGLE: tuple[tuple[re.Pattern[str], Callable[..., None]], ...] = (
    (_CLUSTER_ID, _ClusterMemory._take_id),
    (_TOPIC, _ClusterMemory._take_topic),
    (_PARTITION, _ClusterMemory._take_partition),
    (_GONE, _ClusterMemory._take_gone),
    (_GONE_GROUP, _ClusterMemory._take_gone_group),
)
_ROWS: Mapping[str, Callable[[_ClusterMemory, str], None]] = {
    "brokers": _ClusterMemory._take_broker,
    "quorum": _ClusterMemory._take_quorum,
    "settings": _ClusterMemory._take_setting,
    "protocols": _ClusterMemory._take_protocol,
    "groups": _ClusterMemory._take_group,
    "lags": _ClusterMemory._take_lag,
    "unread": _ClusterMemory._take_unread,
}


def texts_of(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield lines as text; what is no UTF-8 is replaced."""
    for line in lines:
        yield line.decode("utf-8", "replace")
