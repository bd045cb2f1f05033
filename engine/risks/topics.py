"""Risks of topics: their replicas, and what a write waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.model.incidents import RenderedStep
from engine.risks.cluster import AuditedCluster, AuditedPartition, AuditedTopic
from engine.risks.risk import COPIES, TOPIC, Risk, more_copies, reassign, set_topic, spread

_MIN, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
# The topics of Connect workers and schema registries have names of the operator's choice; these are those of the usual images.
_OF_SERVICES = re.compile(
    r"(?:^|[._-])(?:connect|mm2)(?:[._-].*)?[._-](?:configs?|offsets?|status(?:es)?)(?:[._-].*)?$|^_schemas$", re.IGNORECASE
)
_BOUNDED = ("Fetch(1)", 16)  # since 3.7, which takes no more of min.insync.replicas than there are replicas (KAFKA-15583)
_THIRD = "Nothing that can be set helps: it takes a third broker that is up, with a replica of the topic."
_COPYING = (
    "Copies its data to further brokers in the background, which may take hours and competes with clients for the network"
    " (--throttle limits it)."
)
_REFUSED = "Writes with acks=all are refused while fewer than two replicas are in sync"
_ASK_FOR_TWO = "Ask for two copies of every write with acks=all"
_ONLY_THEN = f"{_REFUSED}: all of them, if it is set before the copies are complete."


def is_internal(topic: AuditedTopic) -> bool:
    """Whether a service keeps its own state in a topic: brokers, Connect workers, a schema registry."""
    compacted = "compact" in topic.settings.get("cleanup.policy", "")
    return topic.is_coordination or (compacted and _OF_SERVICES.search(topic.name) is not None)


def one_replica(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics of which a partition has one replica."""
    for topic in _with_one_replica(cluster):
        if not is_internal(topic):
            yield Risk(
                "topic-one-replica",
                "high",
                TOPIC,
                topic.name,
                f"{_lone(topic)} of topic {topic.name} {_has(topic)} one replica, on {_brokers(topic)}",
                "While that broker is away it can be neither written nor read, and what its disk loses is lost.",
                *_copied(cluster, topic),
            )


def internal_one_replica(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics with the state of brokers, Connect workers or a registry of which a partition has one replica."""
    for topic in _with_one_replica(cluster):
        if is_internal(topic):
            why = (
                "While that broker is away, groups or transactions that are kept there have no coordinator: consumers stop."
                if topic.is_coordination
                else "While that broker is away, the workers that keep their state there can neither start nor continue."
            )
            what = f"The internal topic {topic.name} has one replica, on {_brokers(topic)}"
            yield Risk("internal-topic-one-replica", "critical", TOPIC, topic.name, what, why, *_copied(cluster, topic))


def writes_to_one(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics with several replicas of which one is enough for acks=all."""
    for topic in cluster.topics.values():
        if topic.copies < 2 or cluster.number_of(topic, _MIN) != 1:
            continue
        grown = more_copies(cluster, topic)  # with two of two, no broker might be away
        step = set_topic(cluster, topic.name, _MIN, 2, _ASK_FOR_TWO)
        enough = topic.copies >= COPIES or bool(grown)
        changes = f"{_COPYING} {_ONLY_THEN}" if grown else f"{_REFUSED}; others are as before."
        yield Risk(
            "min-insync-worthless",
            "medium",
            TOPIC,
            topic.name,
            f"Topic {topic.name} has {topic.copies} replicas and min.insync.replicas=1{_whence(topic, _MIN)}",
            "A write with acks=all is confirmed as soon as the leader alone has it; if that broker dies, it is lost.",
            (*grown, step) if enough else (),
            changes if enough else _THIRD,
        )


def writes_refused(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics that refuse writes with acks=all always, or as soon as one broker is away."""
    is_bounded = cluster.takes(*_BOUNDED)
    for topic in cluster.topics.values():
        least = cluster.number_of(topic, _MIN)
        if least is None or least < 2 or least < topic.copies or (is_bounded and topic.copies == 1):
            continue
        grown = more_copies(cluster, topic)
        copies = min(COPIES, len(cluster.live_brokers)) if grown else topic.copies
        lower: tuple[RenderedStep, ...] = ()
        if least >= copies > 2:
            lower = (set_topic(cluster, topic.name, _MIN, copies - 1, f"Let {copies - 1} replicas in sync be enough"),)
        fewer = f"Writes with acks=all go on while {copies - 1} of {copies} replicas are in sync."
        yield Risk(
            "min-insync-impossible",
            "critical" if least > topic.copies and not is_bounded else "high",
            TOPIC,
            topic.name,
            f"Topic {topic.name} has {topic.copies} replica{'s' if topic.copies > 1 else ''} and"
            f" min.insync.replicas={least}{_whence(topic, _MIN)}",
            "Brokers before 3.7 refuse every write with acks=all; later ones ask for all replicas there are."
            if least > topic.copies and not is_bounded
            else "As soon as one broker is away, and in every rolling restart, writes with acks=all are refused.",
            (*lower, *grown),
            " ".join((*([fewer] if lower else ()), *([_COPYING] if grown else ()))) or _THIRD,
        )


def unclean_election(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics that are set to take a leader that has not got all confirmed records."""
    for topic in cluster.topics.values():
        if topic.settings.get(_UNCLEAN) == "true" and topic.copies > 1:
            do = "Let only a replica that is in sync become leader"
            yield Risk(
                "unclean-election",
                "high",
                TOPIC,
                topic.name,
                f"Topic {topic.name} has unclean.leader.election.enable=true",
                "When the replicas in sync are away, one that is behind becomes leader, and confirmed records are lost.",
                (set_topic(cluster, topic.name, _UNCLEAN, "false", do),),
                "The topic waits for a replica that was in sync instead: it is away longer, and loses nothing.",
            )


def one_rack(cluster: AuditedCluster) -> Iterator[Risk]:
    """Topics of which all replicas of a partition are in one rack, although there are several racks."""
    racks = cluster.racks()
    if len({racks[id_] for id_ in cluster.live_brokers if id_ in racks}) < 2:
        return
    for topic in cluster.topics.values():
        together = [partition for partition in topic.partitions if _is_together(partition, racks)]
        if together:
            rack = racks[together[0].replicas[0]]
            numbers = ", ".join(str(partition.number) for partition in together[:10])
            yield Risk(
                "one-rack",
                "medium",
                TOPIC,
                topic.name,
                f"All replicas of topic {topic.name}, partition {numbers}{' ...' if len(together) > 10 else ''},"
                f" are in rack {rack}",
                "When that rack (or zone) fails, every replica is away at once.",
                more_copies(cluster, topic) or _moved(cluster, topic, together),
                _COPYING,
            )


def _is_together(partition: AuditedPartition, racks: Mapping[int, str]) -> bool:
    places = {racks.get(id_) for id_ in partition.replicas}
    return len(partition.replicas) > 1 and len(places) == 1 and None not in places


def _moved(cluster: AuditedCluster, topic: AuditedTopic, together: Sequence[AuditedPartition]) -> tuple[RenderedStep, ...]:
    moves = {partition.number: _apart(cluster, partition) for partition in together}
    return reassign(cluster, topic, moves, "Move the last replica of each into another rack")


def _apart(cluster: AuditedCluster, partition: AuditedPartition) -> list[int]:
    rest = partition.replicas[:-1]
    moved = spread(cluster, rest, len(partition.replicas) + 1, partition.number)
    others = [id_ for id_ in moved if id_ not in partition.replicas]
    return [*rest, others[0]]


def _with_one_replica(cluster: AuditedCluster) -> Iterator[AuditedTopic]:
    return (topic for topic in cluster.topics.values() if topic.copies == 1)


def _copied(cluster: AuditedCluster, topic: AuditedTopic) -> tuple[tuple[RenderedStep, ...], str]:
    """Return the steps that give a topic more replicas, and have a write wait for two of them, and what they change."""
    grown = more_copies(cluster, topic)
    if not grown:
        return (), "Nothing that can be set helps: it takes a second broker that is up, with a replica of the topic."
    if cluster.number_of(topic, _MIN) != 1 or len(cluster.live_brokers) < COPIES:
        return grown, _COPYING
    return (*grown, set_topic(cluster, topic.name, _MIN, 2, _ASK_FOR_TWO)), f"{_COPYING} {_ONLY_THEN}"


def _lone(topic: AuditedTopic) -> str:
    lone = sum(len(partition.replicas) == 1 for partition in topic.partitions)
    return f"{lone} of {len(topic.partitions)} partitions" if len(topic.partitions) > 1 else "The partition"


def _has(topic: AuditedTopic) -> str:
    return "have" if len(topic.partitions) > 1 else "has"


def _brokers(topic: AuditedTopic) -> str:
    ids = sorted({partition.replicas[0] for partition in topic.partitions if len(partition.replicas) == 1})
    return f"broker {', '.join(map(str, ids))}"


def _whence(topic: AuditedTopic, setting: str) -> str:
    return "" if setting in topic.settings else " (from the brokers)"
