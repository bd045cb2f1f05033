"""Judges clusters by the pictures of them that a run keeps, instead of asking. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from engine.model.pictures import ClusterPicture, KnownPictures, PicturedGroup
from engine.risks.cluster import (
    AuditedBroker,
    AuditedCluster,
    AuditedConnector,
    AuditedGroup,
    AuditedPartition,
    AuditedTopic,
    GroupLag,
)
from engine.risks.judging import AcceptedRisk, ClusterAudit, judged

_ONLY_ASKED = (
    "settings of connectors, versions of requests and the ages of unread records are not asked for by a run, so what depends on"
    " them is not judged here; `tocsin audit` asks for them"
)


class AuditTerms(Struct, frozen=True):
    """What pictures are judged by, beside themselves.

    Attributes:
        accepted: the risks that are accepted.
        clusters: by name of cluster, the addresses for commands and whether these must sign in.
    """

    accepted: tuple[AcceptedRisk, ...] = ()
    clusters: Mapping[str, AuditedCluster] = {}

    def judged(self, name: str, pictures: KnownPictures) -> ClusterAudit:
        """Return what is at risk in the cluster `name`, as far as a run asks for it."""
        base = self.clusters.get(name, AuditedCluster(name))
        return judged(pictured_cluster(pictures, base), self.accepted)


def pictured_cluster(pictures: KnownPictures, base: AuditedCluster) -> AuditedCluster:
    """Return `base` with what the last picture has."""
    picture = pictures.last
    return replace(
        base,
        cluster_id=picture.cluster_id,
        at=picture.confirmed_at or picture.at,
        bootstrap=base.bootstrap or picture.bootstrap(),
        brokers=dict(_brokers(picture)),
        voters=picture.voters,
        topics=dict(_topics(picture)),
        groups={name: _group(name, group, pictures.earlier) for name, group in sorted(picture.groups.items())},
        connectors={
            name: AuditedConnector(name, connector.type, None, connector.topics)
            for name, connector in picture.connectors.items()
        },
        asked_connect=base.asked_connect or "connect" in picture.versions,
        unseen=(*base.unseen, _ONLY_ASKED),
    )


def _brokers(picture: ClusterPicture) -> Iterator[tuple[int, AuditedBroker]]:
    for id_, broker in picture.brokers.items():
        settings = {name: setting.value for name, setting in picture.settings.get(id_, {}).items()}
        yield int(id_), AuditedBroker(int(id_), broker.address, broker.rack, settings, is_fenced=broker.fenced)


def _topics(picture: ClusterPicture) -> Iterator[tuple[str, AuditedTopic]]:
    for name, topic in sorted(picture.topics.items()):
        partitions = tuple(AuditedPartition(number, _ids(partition.replicas)) for number, partition in topic.partitions.items())
        if partitions:
            yield name, AuditedTopic(name, partitions, topic.settings)


def _group(name: str, group: PicturedGroup, earlier: ClusterPicture | None) -> AuditedGroup:
    known = earlier.groups.get(name) if earlier is not None else None
    lags = []
    for topic, lag in sorted(group.lags.items()):
        before = known.lags.get(topic) if known is not None else None
        has_moved = before is not None and before.committed != lag.committed
        lags.append(GroupLag(topic, None, lag.committed, lag.lag, before.lag if before else None, has_moved=has_moved))
    return AuditedGroup(name, group.state, tuple(lags))


def _ids(names: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(name) for name in names)
