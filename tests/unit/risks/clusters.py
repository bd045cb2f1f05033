"""A cluster in which nothing is at risk, for tests to change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from engine.risks.cluster import (
    AuditedBroker,
    AuditedCluster,
    AuditedConnector,
    AuditedGroup,
    AuditedPartition,
    AuditedTopic,
    GroupLag,
)

AT = datetime(2026, 11, 26, 22, tzinfo=UTC)
BROKER_SETTINGS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "log.retention.hours": "168",
    "message.max.bytes": "1048588",
    "min.insync.replicas": "2",
    "num.partitions": "1",
    "replica.fetch.max.bytes": "1048588",
    "unclean.leader.election.enable": "false",
}
PROTOCOLS = {"Fetch(1)": "4 to 18"}


def topic(name: str, *replicas: tuple[int, ...], **settings: str) -> AuditedTopic:
    parts = tuple(AuditedPartition(number, ids) for number, ids in enumerate(replicas or ((1, 2, 3),)))
    return AuditedTopic(name, parts, {key.replace("_", "."): value for key, value in settings.items()})


def broker(id_: int, rack: str = "", **settings: str) -> AuditedBroker:
    own = {key.replace("_", "."): value for key, value in settings.items()}
    return AuditedBroker(id_, f"kafka-{id_}:9092", rack, {**BROKER_SETTINGS, **own}, PROTOCOLS)


def group(name: str, state: str, **lag: Any) -> AuditedGroup:
    return AuditedGroup(name, state, (GroupLag("orders", 0, **{"offset": 3, "lag": 5, **lag}),))


def connector(name: str, kind: str, *topics: str, **settings: str) -> AuditedConnector:
    return AuditedConnector(name, kind, {key.replace("_", "."): value for key, value in settings.items()}, topics)


def cluster(*parts: AuditedTopic | AuditedBroker | AuditedGroup | AuditedConnector, **fields: Any) -> AuditedCluster:
    """Return a cluster without risks, with `parts` beside what it has, or in its place."""
    brokers = {id_: broker(id_) for id_ in (1, 2, 3)} | {part.id: part for part in parts if isinstance(part, AuditedBroker)}
    topics = {"orders": topic("orders")} | {part.name: part for part in parts if isinstance(part, AuditedTopic)}
    clean = AuditedCluster(
        "prod",
        "cluster-id",
        AT,
        "kafka-1:9092",
        "http://connect-1:8083",
        brokers=brokers,
        voters=(1, 2, 3),
        topics=topics,
        groups={part.name: part for part in parts if isinstance(part, AuditedGroup)},
        connectors={part.name: part for part in parts if isinstance(part, AuditedConnector)},
        workers={"connect-1:8083": "4.3.1"},
        asked_connect=True,
    )
    return replace(clean, **fields)
