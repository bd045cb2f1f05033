"""The blast radius of a group of alerts, and its sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC

from engine.model.blast import BlastRadius, Touched, of_brokers, of_connector, of_group, of_log_dir, of_topic
from engine.model.incidents import Alert
from engine.model.pictures import ClusterPicture

FEW = 5  # names in a sentence
_TOPICS = ("topic", "partition_topic", "partition", "tp")  # labels that name a topic, or one of its partitions
_BROKERS = ("broker", "node")


def blast_of(alert: Alert, picture: ClusterPicture) -> BlastRadius | None:
    """Return what an alert touches by `picture`, by the most specific thing that its entity names; None when it names nothing
    that is in the picture."""
    entity = dict(alert.key[2])
    for radius in _radii(entity, alert, picture):
        return radius
    return None


def sentences(radius: BlastRadius) -> str:
    """Return what an incident touches in words, with counts and the first FEW names; empty when nothing is touched."""
    parts = list(_parts(radius))
    users = list(_users(radius))
    if not parts and not users:
        return ""
    at = f"{radius.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if not parts:
        return f"As the cluster was at {at}: {radius.subject} is {'; '.join(users)}."
    first = f"As the cluster was at {at}: {radius.subject} {'; '.join(parts)}."
    return f"{first} {_sentence(users)}" if users else first


def _radii(entity: Mapping[str, str], alert: Alert, picture: ClusterPicture) -> Iterator[BlastRadius]:
    if entity.get("connector", "") in picture.connectors:
        yield of_connector(entity["connector"], picture)
    if entity.get("group", "") in picture.groups:
        yield of_group(entity["group"], picture)
    for topic in (entity[label] for label in _TOPICS if label in entity):
        for name in (topic, topic.rpartition("-")[0]):
            if name in picture.topics:
                yield of_topic(name, picture)
    for broker in (entity[label] for label in _BROKERS if label in entity):
        paths = {str(value) for name in ("dir", "path") if name in alert.captures for value in alert.captures[name].values}
        yield from (of_log_dir(broker, path, picture) for path in sorted(paths) if (broker, path) in picture.log_dirs)
        if broker in picture.brokers:
            yield of_brokers([broker], f"broker {broker}", picture)
    if "rack" in entity:
        ids = [id_ for id_, broker in picture.brokers.items() if broker.rack == entity["rack"]]
        yield from (of_brokers(ids, f"rack {entity['rack']}", picture) for _ in ids[:1])


def _parts(radius: BlastRadius) -> Iterator[str]:
    kind = radius.subject.partition(" ")[0]
    if kind in ("group", "connector"):
        if radius.topics:
            yield f"uses {_listed(radius.topics, 'topic', 'topics')}"
    elif kind == "topic":
        if radius.lone:
            yield f"has a single replica of {_names(radius.lone)}"
        if radius.below_min_isr:
            yield "has fewer replicas in sync than min.insync.replicas"
    else:
        if radius.led:
            yield f"led {_listed(radius.led, 'partition', 'partitions')}"
        if radius.lone:
            yield f"had the only replica of {_names(radius.lone)}"
        if radius.below_min_isr:
            yield f"without it fewer replicas are in sync than min.insync.replicas in {_names(radius.below_min_isr)}"


def _users(radius: BlastRadius) -> Iterator[str]:
    if radius.groups:
        yield f"read by {_listed(radius.groups, 'group', 'groups')}"
    if radius.readers:
        yield f"read by {_listed(radius.readers, 'sink connector', 'sink connectors')}"
    if radius.writers:
        yield f"written by {_listed(radius.writers, 'source connector', 'source connectors')}"
    if radius.others:
        yield f"used by {_listed(radius.others, 'connector', 'connectors')}"


def _listed(things: Touched, one: str, many: str) -> str:
    """Return `group a`, or `12 partitions (a-0, a-1, ... and 7 more)`."""
    return f"{one} {things.names[0]}" if things.count == 1 else f"{things.count:,} {many} ({_names(things)})"


def _names(things: Touched) -> str:
    names, more = things.names[:FEW], things.count - FEW
    return f"{', '.join(names)} and {more:,} more" if more > 0 else ", ".join(names)


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."
