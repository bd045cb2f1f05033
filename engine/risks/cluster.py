"""A Kafka cluster, and the Connect cluster beside it, as an audit sees them: plain facts, none of them judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from engine.model.pictures import BROKER_DEFAULTS

_RETENTION_MS = {
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}  # the first one holds
_COORDINATION = ("__consumer_offsets", "__transaction_state", "__share_group_state")


class AuditedPartition(Struct, frozen=True):
    """A partition: the ids of the brokers that have its replicas, the preferred leader first."""

    number: int
    replicas: tuple[int, ...]


class AuditedTopic(Struct, frozen=True):
    """A topic: its partitions in order, and the settings that it has of its own."""

    name: str
    partitions: tuple[AuditedPartition, ...]
    settings: Mapping[str, str] = {}

    @property
    def copies(self) -> int:
        """The replicas of the partition that has the fewest."""
        return min(len(partition.replicas) for partition in self.partitions)

    @property
    def deletes_records(self) -> bool:
        """Whether old records are deleted, by age or size: not from a topic that is compacted only."""
        return "delete" in self.settings.get("cleanup.policy", "delete")

    @property
    def is_coordination(self) -> bool:
        """Whether brokers keep the state of groups or transactions in it."""
        return self.name in _COORDINATION


class AuditedBroker(Struct, frozen=True):
    """A broker. `rack` is empty without one. `settings` are its effective values: of those that were asked for, empty if they
    could not be seen. `protocols` are the requests that it takes, with their versions: empty if they were not asked for.
    `is_fenced`: it is registered, but away: it leads no partition."""

    id: int
    address: str
    rack: str = ""
    settings: Mapping[str, str] = {}
    protocols: Mapping[str, str] = {}
    is_fenced: bool = False


class GroupLag(Struct, frozen=True):
    """How far a group is behind in a partition: in records; None where the end is not known.

    Attributes:
        partition: its number; None: all partitions of the topic together.
        offset: the offset that the group has committed last; None if there is none.
        earlier: the lag when it was first known; None if it is known once.
        unread_since: a time at which the oldest unread record was there already; None if it is young, or was not asked for.
        is_lost: records were deleted before the group has read them.
        has_moved: the group has committed another offset since its lag was first known.
    """

    topic: str
    partition: int | None
    offset: int | None
    lag: int | None
    earlier: int | None = None
    unread_since: datetime | None = None
    is_lost: bool = False
    has_moved: bool = False


class AuditedGroup(Struct, frozen=True):
    """A consumer group: its state as Kafka names it, empty if it is not known, and its lag where it has committed offsets."""

    name: str
    state: str
    lags: tuple[GroupLag, ...] = ()

    @property
    def lag(self) -> int:
        """The records that it has not read, as far as they are known."""
        return sum(lag.lag or 0 for lag in self.lags)


class AuditedConnector(Struct, frozen=True):
    """A connector. `kind` is source or sink; `settings` are those that were asked for, None if none were; `topics` are those
    that it has used, in order of name."""

    name: str
    kind: str
    settings: Mapping[str, str] | None = None
    topics: tuple[str, ...] = ()


class AuditedCluster(Struct, frozen=True):
    """What an audit judges.

    Attributes:
        at: when it was asked; None if that is not known.
        bootstrap, connect_url: the addresses for commands; empty if not known.
        tls: whether Kafka's tools need a file of settings to sign in.
        voters: the ids of the controllers that vote; empty without KRaft, or if they could not be seen.
        workers: the versions of Connect's workers, by address.
        asked_connect: whether a Connect cluster was asked.
        unseen: sentences about what could not be seen.
    """

    name: str = ""
    cluster_id: str = ""
    at: datetime | None = None
    bootstrap: str = ""
    connect_url: str = ""
    tls: bool = False
    brokers: Mapping[int, AuditedBroker] = {}
    voters: tuple[int, ...] = ()
    topics: Mapping[str, AuditedTopic] = {}
    groups: Mapping[str, AuditedGroup] = {}
    connectors: Mapping[str, AuditedConnector] = {}
    workers: Mapping[str, str] = {}
    asked_connect: bool = False
    unseen: tuple[str, ...] = ()

    @property
    def live_brokers(self) -> Mapping[int, AuditedBroker]:
        """The brokers that are not fenced."""
        return {id_: broker for id_, broker in self.brokers.items() if not broker.is_fenced}

    def of_brokers(self, setting: str) -> Mapping[int, str]:
        """Return the value of a setting at each broker that it is known of."""
        return {id_: broker.settings[setting] for id_, broker in self.brokers.items() if setting in broker.settings}

    def of_topic(self, topic: AuditedTopic, setting: str) -> str | None:
        """Return the value that holds for a topic: its own, or that of the brokers; None if it is not known, or if the brokers
        differ."""
        if setting in topic.settings:
            return topic.settings[setting]
        values = set(self.of_brokers(BROKER_DEFAULTS.get(setting, setting)).values())
        return values.pop() if len(values) == 1 else None

    def number_of(self, topic: AuditedTopic, setting: str) -> int | None:
        """Return the value of a setting as a number; None if it is not known."""
        return number(self.of_topic(topic, setting))

    def retention_ms(self, topic: AuditedTopic) -> int | None:
        """Return for how long a topic keeps records, by the broker that keeps them for the shortest time if the topic does not
        set it; None for ever, or if it is not known."""
        if not topic.deletes_records:
            return None
        own = number(topic.settings.get("retention.ms"))
        times = [own] if own is not None else [_retention_ms(broker.settings) for broker in self.brokers.values()]
        return min((time for time in times if time is not None and time > 0), default=None)

    def takes(self, request: str, version: int) -> bool:
        """Return whether every broker that is not fenced is known to take this version of a request, such as `Fetch(1)`."""
        ranges = [broker.protocols.get(request, "").rpartition(" ")[2] for broker in self.live_brokers.values()]
        return bool(ranges) and all((number(most) or 0) >= version for most in ranges)

    def racks(self) -> Mapping[int, str]:
        """Return the rack of each broker that has one."""
        return {id_: broker.rack for id_, broker in self.brokers.items() if broker.rack}

    def partitions(self) -> Iterator[tuple[AuditedTopic, AuditedPartition]]:
        """Yield every partition with its topic, in order of topic."""
        for name in sorted(self.topics):
            yield from ((self.topics[name], partition) for partition in self.topics[name].partitions)


def _retention_ms(settings: Mapping[str, str]) -> int | None:
    values = ((number(settings.get(setting)), unit_ms) for setting, unit_ms in _RETENTION_MS.items())
    return next((value * unit_ms for value, unit_ms in values if value is not None), None)


def number(value: str | None) -> int | None:
    """Return a whole number; None for what is none."""
    return int(value) if value is not None and value.lstrip("-").isdecimal() else None
