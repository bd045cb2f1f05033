"""The blast radius of a group of alerts, and its sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC

from engine.model.blast import BlastRadius, Touched, of_brokers, of_connector, of_group, of_log_dir, of_topic
from engine.model.incidents import Alert
from engine.model.pictures import ClusterPicture
from engine.model.words import ENGLISH, Words, marked

FEW = 5  # names in a sentence
_TOPICS = ("topic", "partition_topic", "partition", "tp")  # labels that name a topic, or one of its partitions
_BROKERS = ("broker", "node")
_KINDS = ("topic", "partition", "group", "sink connector", "source connector", "connector", "broker", "rack")
_ONE = marked(
    "topic {name}",
    "partition {name}",
    "group {name}",
    "sink connector {name}",
    "source connector {name}",
    "connector {name}",
    "broker {name}",
    "rack {name}",
)
_MANY = marked(
    "{number:,} topics ({names})",
    "{number:,} partitions ({names})",
    "{number:,} groups ({names})",
    "{number:,} sink connectors ({names})",
    "{number:,} source connectors ({names})",
    "{number:,} connectors ({names})",
)


def blast_of(alert: Alert, picture: ClusterPicture) -> BlastRadius | None:
    """Return what an alert touches by `picture`, by the most specific thing that its entity names; None when it names nothing
    that is in the picture."""
    entity = dict(alert.key[2])
    for radius in _radii(entity, alert, picture):
        return radius
    return None


def sentences(radius: BlastRadius, words: Words = ENGLISH) -> str:
    """Return what an incident touches in words, with counts and the first FEW names; empty when nothing is touched."""
    parts = "; ".join(_parts(radius, words))
    users = "; ".join(_users(radius, words))
    values = {"at": f"{radius.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", "subject": _subject(radius.subject, words)}
    if not parts:
        return words("As the cluster was at {at}: {subject} is {users}.", users=users, **values) if users else ""
    first = words("As the cluster was at {at}: {subject} {facts}.", facts=parts, **values)
    return f"{first} {users[:1].upper()}{users[1:]}." if users else first


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


def _parts(radius: BlastRadius, words: Words) -> Iterator[str]:
    kind = radius.subject.partition(" ")[0]
    if kind in ("group", "connector"):
        if radius.topics:
            yield words("uses {things}", things=_listed(radius.topics, "topic", words))
    elif kind == "topic":
        if radius.lone:
            yield words("has a single replica of {names}", names=_names(radius.lone, words))
        if radius.below_min_isr:
            yield words("has fewer replicas in sync than min.insync.replicas")
    else:
        if radius.led:
            yield words("led {things}", things=_listed(radius.led, "partition", words))
        if radius.lone:
            yield words("had the only replica of {names}", names=_names(radius.lone, words))
        if radius.below_min_isr:
            names = _names(radius.below_min_isr, words)
            yield words("without it fewer replicas are in sync than min.insync.replicas in {names}", names=names)


def _users(radius: BlastRadius, words: Words) -> Iterator[str]:
    if radius.groups:
        yield words("read by {things}", things=_listed(radius.groups, "group", words))
    if radius.readers:
        yield words("read by {things}", things=_listed(radius.readers, "sink connector", words))
    if radius.writers:
        yield words("written by {things}", things=_listed(radius.writers, "source connector", words))
    if radius.others:
        yield words("used by {things}", things=_listed(radius.others, "connector", words))


def _subject(subject: str, words: Words) -> str:
    kind, _, name = subject.partition(" ")
    if kind in _KINDS:
        return words(_ONE[_KINDS.index(kind)], name=name)
    path, _, broker = subject.rpartition(" of broker ")
    return words("{path} of broker {broker}", path=path, broker=broker)


def _listed(things: Touched, kind: str, words: Words) -> str:
    """Return `group a`, or `12 partitions (a-0, a-1, ... and 7 more)`; `kind` is one of the first of _KINDS."""
    place = _KINDS.index(kind)
    if things.count == 1:
        return words(_ONE[place], name=things.names[0])
    return words(_MANY[place], number=things.count, names=_names(things, words))


def _names(things: Touched, words: Words) -> str:
    names, more = ", ".join(things.names[:FEW]), things.count - FEW
    return words("{names} and {number:,} more", names=names, number=more) if more > 0 else names
