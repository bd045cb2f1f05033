"""The blast radius of an incident: what it touches, by the last picture of the cluster before it began."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from engine.model.pictures import ClusterPicture, PicturedPartition

MOST_NAMES = 1000  # of one kind
SINK_GROUP = "connect-"  # and the name of the connector: the group of a sink
MIN_ISR = "min.insync.replicas"
INTERNAL = "__"


class Touched(Struct, frozen=True):
    """Things of one kind: how many, and the names of the first MOST_NAMES, in order."""

    count: int = 0
    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0


NOTHING_TOUCHED = Touched()


class BlastRadius(Struct, frozen=True, omit_defaults=True):
    """What an incident about `subject` touches, as the cluster was `at`.

    Attributes:
        led: the partitions that the subject led.
        lone: the partitions whose only replica it has.
        below_min_isr: the topics with fewer replicas in sync than min.insync.replicas, if it stays away.
        topics: the topics concerned: those of `lone` and `below_min_isr`, else all that it led, or that the subject uses.
        groups: the groups that read these.
        writers: the source connectors that write them.
        readers: the sink connectors that read them.
        others: connectors that use them; whether they write or read is not known.
    """

    subject: str
    at: datetime
    led: Touched = NOTHING_TOUCHED
    lone: Touched = NOTHING_TOUCHED
    below_min_isr: Touched = NOTHING_TOUCHED
    topics: Touched = NOTHING_TOUCHED
    groups: Touched = NOTHING_TOUCHED
    writers: Touched = NOTHING_TOUCHED
    readers: Touched = NOTHING_TOUCHED
    others: Touched = NOTHING_TOUCHED


def touched(names: Iterable[str]) -> Touched:
    """Return `names`, distinct, in the order given."""
    distinct = tuple(dict.fromkeys(names))
    return Touched(len(distinct), distinct[:MOST_NAMES])


def of_brokers(ids: Sequence[str], subject: str, picture: ClusterPicture) -> BlastRadius:
    """Return what is touched when all brokers of `ids` are away."""
    return _of_replicas(subject, picture, lambda _topic, _number: frozenset(ids))


def of_log_dir(broker: str, path: str, picture: ClusterPicture) -> BlastRadius:
    """Return what is touched when one of several log directories of a broker is away."""
    there = frozenset(picture.log_dirs[broker, path])
    lost = frozenset((broker,))
    return _of_replicas(
        f"{path} of broker {broker}", picture, lambda topic, number: lost if f"{topic}-{number}" in there else frozenset()
    )


def of_topic(topic: str, picture: ClusterPicture) -> BlastRadius:
    """Return what an outage of `topic` touches."""
    partitions = picture.topics[topic].partitions
    below = any(len(partition.isr) < _min_isr(topic, picture) for partition in partitions.values())
    users = _users([topic], picture)
    return BlastRadius(
        f"topic {topic}",
        picture.at,
        lone=touched(f"{topic}-{number}" for number, partition in sorted(partitions.items()) if len(partition.replicas) == 1),
        below_min_isr=touched([topic] if below else ()),
        topics=touched([topic]),
        **users,
    )


def of_group(group: str, picture: ClusterPicture) -> BlastRadius:
    """Return what an outage of `group` touches: the topics that it reads, and what writes them."""
    topics = sorted(picture.groups[group].lags)
    users = _users(topics, picture)
    own = {
        name for name, connector in picture.connectors.items() if connector.type != "source" and f"{SINK_GROUP}{name}" == group
    }
    return BlastRadius(
        f"group {group}", picture.at, topics=touched(topics), writers=users["writers"], readers=touched(sorted(own))
    )


def of_connector(name: str, picture: ClusterPicture) -> BlastRadius:
    """Return what an outage of a connector touches: its topics, and the groups that read what it writes."""
    topics = picture.connectors[name].topics
    groups = touched(group for group in _users(topics, picture)["groups"].names if group != f"{SINK_GROUP}{name}")
    return BlastRadius(
        f"connector {name}",
        picture.at,
        topics=touched(topics),
        groups=groups if _type(name, picture) != "sink" else NOTHING_TOUCHED,
    )


def _of_replicas(subject: str, picture: ClusterPicture, lost: Callable[[str, int], frozenset[str]]) -> BlastRadius:
    """Return what is touched when the replicas of each partition on the brokers `lost` are away."""
    led, lone, below = list[str](), list[str](), list[str]()
    for topic, number, partition in _partitions(picture):
        away = lost(topic, number)
        if not away or away.isdisjoint(partition.replicas):
            continue
        led += [f"{topic}-{number}"] if partition.leader in away else []
        if away.issuperset(partition.replicas):
            lone.append(f"{topic}-{number}")
        elif len(set(partition.isr) - away) < _min_isr(topic, picture):
            below.append(topic)
    stopped = [name.rpartition("-")[0] for name in lone] + below
    topics = list(dict.fromkeys(stopped or (name.rpartition("-")[0] for name in led)))
    return BlastRadius(
        subject,
        picture.at,
        touched(led),
        touched(lone),
        touched(below),
        touched(topics),
        **_users(topics, picture),
    )


def _partitions(picture: ClusterPicture) -> Iterator[tuple[str, int, PicturedPartition]]:
    """Yield every partition; those of topics that the cluster has for itself come last."""
    for topic in sorted(picture.topics, key=lambda name: (name.startswith(INTERNAL), name)):
        for number, partition in sorted(picture.topics[topic].partitions.items()):
            yield topic, number, partition


def _min_isr(topic: str, picture: ClusterPicture) -> int:
    setting = picture.topic_setting(topic, MIN_ISR)
    return int(setting.value) if setting is not None and setting.value.isdigit() else 1


def _users(topics: Iterable[str], picture: ClusterPicture) -> Mapping[str, Touched]:
    """Return the groups and connectors that use any of `topics`."""
    wanted = frozenset(topics)
    groups = (name for name, group in sorted(picture.groups.items()) if not wanted.isdisjoint(group.lags))
    by_type: dict[str, list[str]] = {"source": [], "sink": [], "": []}
    for name, connector in sorted(picture.connectors.items()):
        if not wanted.isdisjoint(connector.topics):
            by_type[_type(name, picture)].append(name)
    return {
        "groups": touched(groups),
        "writers": touched(by_type["source"]),
        "readers": touched(by_type["sink"]),
        "others": touched(by_type[""]),
    }


def _type(name: str, picture: ClusterPicture) -> str:
    """Return source, sink or empty. A connector with a group of its own reads."""
    type_ = picture.connectors[name].type
    if type_ in ("source", "sink"):
        return type_
    return "sink" if f"{SINK_GROUP}{name}" in picture.groups else ""
