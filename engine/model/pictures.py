"""The picture of a cluster: what its servers stated when they were asked, as of one time.

A fact is one statement about one thing: a broker, a partition, a group. It holds until a later one about the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from engine.model.matches import Value
from engine.model.records import NO_LABELS

FactKey = tuple[str, str]  # kind, name
FLEETING = "lag"  # changes all the time: of each hour only the last fact about a thing is kept
CONFIRMED = ("cluster", "worker-version")  # stated in every round: one fact lasts as long as the rounds go on
PARTS = {"topic": ("partition", "lag"), "group": ("lag",)}  # the kinds of facts about a part of a thing; both name it alike
OF_STEPS = ("topic", "broker-setting")  # what the steps of a fix change
ROUNDS_GO_ON = timedelta(minutes=10)
STALE_AFTER = timedelta(hours=2)  # everything is stated once an hour while a cluster is asked
EARLIER = (timedelta(days=1), timedelta(hours=1))  # how long before a picture it is compared with: the first there is
CONFIRMED_UNTIL = "confirmed_until"  # the value of such a fact: when it was last stated, in seconds since 1970
BROKER_DEFAULTS = {  # settings of a topic, and what brokers call their default of it; all others have one name
    "max.message.bytes": "message.max.bytes",
    "cleanup.policy": "log.cleanup.policy",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
}
_UNSET = ("", "null")


class StatedFact(Struct, frozen=True, array_like=True):
    """What a server stated about one thing, as of `at`; without values: that it is gone.

    `kind` is a name of `answers` of a component; `name` are the values that identify the thing, joined by `/`. `at` is DAWN for
    what was pasted without a time.
    """

    scope: str
    kind: str
    name: str
    at: datetime
    values: Mapping[str, Value] = NO_LABELS

    @property
    def key(self) -> FactKey:
        """What it is about."""
        return self.kind, self.name


class PicturedBroker(Struct, frozen=True):
    """A broker: its address, its rack (empty without one), and whether it is away: the controllers have fenced it, or do not
    list it although partitions are assigned to it."""

    address: str
    rack: str = ""
    fenced: bool = False


class PicturedPartition(Struct, frozen=True):
    """A partition: the id of its leader (None: it has none), its replicas in order, and those that are in sync."""

    leader: str | None
    replicas: tuple[str, ...]
    isr: tuple[str, ...]


class PicturedTopic(Struct, frozen=True):
    """A topic: its partitions by number, and the settings that are set for itself."""

    partitions: Mapping[int, PicturedPartition]
    settings: Mapping[str, str] = NO_LABELS

    @property
    def replicas(self) -> int:
        """The lowest number of replicas of a partition; 0 without partitions."""
        return min((len(partition.replicas) for partition in self.partitions.values()), default=0)


class PicturedLag(Struct, frozen=True):
    """How far a group is behind the end of a topic: in all, in the worst of its partitions; and where it stands, in all."""

    partitions: int
    lag: int
    largest: int
    committed: int


class PicturedGroup(Struct, frozen=True):
    """A consumer group: its state, how many members it has (None: not asked), and its lags by topic."""

    state: str
    members: int | None = None
    lags: Mapping[str, PicturedLag] = {}


class PicturedConnector(Struct, frozen=True):
    """A connector: `source`, `sink` or empty (not known), and the topics that it has written or read since its start."""

    type: str = ""
    topics: tuple[str, ...] = ()


class PicturedSetting(Struct, frozen=True):
    """The value of a setting and where it comes from: `topic` (set for the topic), `dynamic`, `static` or `default`."""

    value: str
    source: str


class ClusterPicture(Struct, frozen=True):
    """What the servers of one scope stated until `at`: the newest fact about each thing.

    `cluster_id` is empty when no broker was asked. `settings` are those of each broker, by name. `versions` are those of
    `kafka` (the metadata.version of the cluster) and `connect`. `log_dirs` are the partitions in each log directory of a
    broker, by broker and path; known of brokers that have several. `voters` are the ids of the controllers that vote; empty
    without KRaft. `confirmed_at` is when the id of the cluster was last
    stated, or without one the version of a worker; None when neither was. `settings_at` is when a setting or a topic last
    changed.
    """

    at: datetime
    cluster_id: str = ""
    brokers: Mapping[str, PicturedBroker] = {}
    topics: Mapping[str, PicturedTopic] = {}
    groups: Mapping[str, PicturedGroup] = {}
    connectors: Mapping[str, PicturedConnector] = {}
    settings: Mapping[str, Mapping[str, PicturedSetting]] = {}
    versions: Mapping[str, str] = NO_LABELS
    log_dirs: Mapping[tuple[str, str], tuple[str, ...]] = {}
    voters: tuple[int, ...] = ()
    confirmed_at: datetime | None = None
    settings_at: datetime | None = None

    def is_too_old(self, at: datetime) -> bool:
        """Return whether nobody has asked for so long before `at` that the cluster may be another by then; False for what was
        pasted, which has no age."""
        return self.confirmed_at is not None and at - self.confirmed_at > STALE_AFTER

    def bootstrap(self, without: str = "") -> str:
        """Return the addresses of up to three brokers to connect to, without fenced ones and the broker `without`."""
        present = (broker.address for id_, broker in self.brokers.items() if not broker.fenced and id_ != without)
        return ",".join(islice(present, 3))

    def seen_until(self, until: datetime) -> ClusterPicture:
        """Return the picture as it was known at `until`, if nothing has changed between the two times."""
        return replace(self, at=until) if until < self.at else self

    def confirmed_by(self, facts: Iterable[StatedFact]) -> ClusterPicture:
        """Return the picture as of the last of `facts`, which change nothing else."""
        return replace(self, at=max((_until(fact) for fact in facts), default=self.at))

    @property
    def present(self) -> tuple[str, ...]:
        """The ids of the brokers that are not away, in order."""
        return tuple(id_ for id_, broker in self.brokers.items() if not broker.fenced)

    def topic_setting(self, topic: str, name: str) -> PicturedSetting | None:
        """Return the present value of a setting of `topic`; None when it is not known."""
        own = self.topics[topic].settings.get(name) if topic in self.topics else None
        return PicturedSetting(own, "topic") if own is not None else self.broker_setting(BROKER_DEFAULTS.get(name, name))

    def broker_setting(self, name: str) -> PicturedSetting | None:
        """Return the present value of a setting of the brokers, if they all have the same; None otherwise."""
        values = {settings[name] for settings in self.settings.values() if name in settings}
        return values.pop() if len(values) == 1 else None


class KnownPictures(Struct, frozen=True):
    """What is known of one cluster: its last picture, and one of EARLIER that shows what has moved since; None without one."""

    last: ClusterPicture
    earlier: ClusterPicture | None = None


class FactChange(Struct, frozen=True):
    """What storing a fact means: `stored` is stored under its time, and `removed` is not needed any more. `is_news`: the thing
    was otherwise before."""

    stored: StatedFact
    removed: StatedFact | None = None
    is_news: bool = False


def change_by(fact: StatedFact, before: StatedFact | None) -> FactChange | None:
    """Return how a fact changes what is stored; None when it does not.

    Args:
        before: the newest stored fact about the same thing that is not newer than `fact`.
    """
    if fact.kind in CONFIRMED:
        return _confirmation(fact, before)
    if before is None:
        return FactChange(fact, is_news=True)
    if before.values == fact.values:
        return None
    is_fleeting = fact.kind == FLEETING and bool(fact.values) and bool(before.values)
    is_same_hour = is_fleeting and before.at != fact.at and _hour(before.at) == _hour(fact.at)
    return FactChange(fact, before if is_same_hour else None, is_news=True)


def with_parts_gone(stated: Iterable[StatedFact], stored: Callable[[str, str], Iterable[StatedFact]]) -> Sequence[StatedFact]:
    """Return `stated` in order of time, with facts that the parts of what is gone are gone too.

    Args:
        stored: returns the newest stored facts of a scope and a kind.
    """
    in_order = sorted(stated, key=lambda fact: fact.at)
    gone = [fact for fact in in_order if fact.kind in PARTS and not fact.values]
    since: dict[tuple[str, str, str, str], dict[str, datetime]] = {}  # by scope, kind, and what it is a part of
    for scope, kind in sorted({(fact.scope, kind) for fact in gone for kind in PARTS[fact.kind]}):
        for fact in chain(stored(scope, kind), (fact for fact in in_order if (fact.scope, fact.kind) == (scope, kind))):
            for whole in PARTS.keys() & fact.values.keys():
                ats = since.setdefault((scope, kind, whole, str(fact.values[whole])), {})
                ats[fact.name] = min(fact.at, ats.get(fact.name, fact.at))
    parts = [
        StatedFact(fact.scope, kind, name, fact.at)
        for fact in gone
        for kind in PARTS[fact.kind]
        for name, at in sorted(since.get((fact.scope, kind, fact.kind, fact.name), {}).items())
        if at <= fact.at
    ]
    return sorted([*in_order, *parts], key=lambda fact: fact.at)


def _confirmation(fact: StatedFact, before: StatedFact | None) -> FactChange | None:
    confirmed = {**fact.values, CONFIRMED_UNTIL: int(fact.at.timestamp())}
    if before is None or {**before.values, CONFIRMED_UNTIL: 0} != {**confirmed, CONFIRMED_UNTIL: 0}:
        return FactChange(replace(fact, values=confirmed), is_news=True)
    if fact.at - _until(before) > ROUNDS_GO_ON:
        return FactChange(replace(fact, values=confirmed))
    return None if fact.at <= _until(before) else FactChange(replace(before, values=confirmed))


def _until(fact: StatedFact) -> datetime:
    """Return when a fact was last stated."""
    at = int(fact.values.get(CONFIRMED_UNTIL, 0))
    return max(fact.at, datetime.fromtimestamp(at, UTC))


def _hour(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def picture_of(facts: Iterable[StatedFact]) -> ClusterPicture | None:
    """Return the picture that facts of one scope give, of which the newest about each thing counts; None without any."""
    newest: dict[FactKey, StatedFact] = {}
    for fact in facts:
        if fact.key not in newest or newest[fact.key].at <= fact.at:
            newest[fact.key] = fact
    if not newest:
        return None
    by_kind: dict[str, list[StatedFact]] = {}
    for _, fact in sorted(newest.items()):
        if fact.values:
            by_kind.setdefault(fact.kind, []).append(fact)
    return ClusterPicture(
        at=max(_until(fact) for fact in newest.values()),
        cluster_id=next((fact.name for fact in sorted(by_kind.get("cluster", ()), key=lambda fact: fact.at, reverse=True)), ""),
        brokers=_brokers(by_kind.get("broker", ())),
        topics=_topics(by_kind.get("topic", ()), by_kind.get("partition", ())),
        groups=_groups(by_kind.get("group", ()), by_kind.get("lag", ())),
        connectors=_connectors(by_kind.get("connector", ()), by_kind.get("connector-topics", ())),
        settings=_settings(by_kind.get("broker-setting", ())),
        versions=_versions(by_kind.get("feature", ()), by_kind.get("worker-version", ())),
        log_dirs=_log_dirs(by_kind.get("log-dir", ())),
        voters=_voters(by_kind.get("quorum", ())),
        confirmed_at=_confirmed_at(by_kind),
        settings_at=max((fact.at for fact in newest.values() if fact.kind in OF_STEPS), default=None),
    )


def _confirmed_at(by_kind: Mapping[str, Sequence[StatedFact]]) -> datetime | None:
    """Return when the cluster was last asked; without brokers that are asked, when Connect was; None if neither was."""
    of_kinds = ([_until(fact) for fact in by_kind.get(kind, ())] for kind in CONFIRMED)
    return next((max(times) for times in of_kinds if times), None)


def _brokers(facts: Sequence[StatedFact]) -> Mapping[str, PicturedBroker]:
    brokers = {
        fact.name: PicturedBroker(
            f"{fact.values['host']}:{fact.values['port']}", _set(fact.values["rack"]), fact.values["state"] != "unfenced"
        )
        for fact in facts
        if fact.values["state"] != "removed"
    }
    return dict(sorted(brokers.items(), key=lambda item: (len(item[0]), item[0])))


def _topics(topics: Sequence[StatedFact], partitions: Sequence[StatedFact]) -> Mapping[str, PicturedTopic]:
    """Return the topics. A partition belongs to a topic as long as the topic has so many."""
    by_topic: dict[str, dict[int, PicturedPartition]] = {}
    for fact in partitions:
        leader = str(fact.values["leader"])
        replicas, isr = (tuple(filter(str.isdigit, _listed(fact, name))) for name in ("replicas", "isr"))
        state = PicturedPartition(leader if leader.isdigit() else None, replicas, isr)
        by_topic.setdefault(str(fact.values["topic"]), {})[int(fact.values["partition"])] = state
    pictured = {}
    for fact in topics:
        count = int(fact.values["partitions"])
        own = sorted(by_topic.get(fact.name, {}).items())
        pictured[fact.name] = PicturedTopic(
            {number: state for number, state in own if number < count}, dict(assignments(str(fact.values.get("configs", ""))))
        )
    return pictured


def _groups(groups: Sequence[StatedFact], lags: Sequence[StatedFact]) -> Mapping[str, PicturedGroup]:
    by_group: dict[str, dict[str, PicturedLag]] = {}
    for fact in lags:
        numbers = (int(fact.values[name]) for name in ("partitions", "lag", "largest_lag", "committed"))
        by_group.setdefault(str(fact.values["group"]), {})[str(fact.values["topic"])] = PicturedLag(*numbers)
    return {
        fact.name: PicturedGroup(
            str(fact.values["state"]),
            int(fact.values["members"]) if "members" in fact.values else None,
            by_group.get(fact.name, {}),
        )
        for fact in groups
    }


def _connectors(connectors: Sequence[StatedFact], topics: Sequence[StatedFact]) -> Mapping[str, PicturedConnector]:
    stated = {fact.name: fact.values for fact in connectors}
    topics_of = {fact.name: tuple(sorted(_listed(fact, "topics"))) for fact in topics}
    pictured = {}
    for name in sorted({*stated, *topics_of}):
        values = stated.get(name, {})
        pictured[name] = PicturedConnector(str(values.get("type", "")), topics_of.get(name, ()))
    return pictured


def _settings(facts: Sequence[StatedFact]) -> Mapping[str, Mapping[str, PicturedSetting]]:
    """Return the settings by broker and name; the first of its synonyms tells where a value comes from."""
    settings: dict[str, dict[str, PicturedSetting]] = {}
    for fact in facts:
        first = str(fact.values.get("synonyms", "")).partition(":")[0]
        source = "dynamic" if first.startswith("DYNAMIC") else "static" if first.startswith("STATIC") else "default"
        of_broker = settings.setdefault(str(fact.values["broker"]), {})
        of_broker[str(fact.values["name"])] = PicturedSetting(str(fact.values["value"]), source)
    return settings


def _versions(features: Sequence[StatedFact], workers: Sequence[StatedFact]) -> Mapping[str, str]:
    stated = [("kafka", fact) for fact in features if fact.name == "metadata.version"]
    stated += [("connect", fact) for fact in sorted(workers, key=lambda fact: fact.at)]
    return {name: str(fact.values["version"]) for name, fact in stated}


def _log_dirs(facts: Sequence[StatedFact]) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the partitions by broker and path; the partitions of one directory are in several facts when they are many."""
    partitions: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        partitions.setdefault((str(fact.values["broker"]), str(fact.values["path"])), []).extend(_listed(fact, "partitions"))
    return {place: tuple(sorted(names)) for place, names in partitions.items()}


def _voters(facts: Sequence[StatedFact]) -> tuple[int, ...]:
    """Return the voters of the cluster that was asked last."""
    last = max(facts, key=lambda fact: fact.at, default=None)
    return () if last is None else tuple(int(id_) for id_ in _listed(last, "voters") if id_.isdecimal())


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of `a=1,b=2,3`; a part without a name belongs to the value before it."""
    name, value = "", ""
    for part in filter(None, text.split(",")):
        if "=" in part:
            if name:
                yield name, value
            name, _, value = part.partition("=")
        elif name:
            value = f"{value},{part}"
    if name:
        yield name, value


def _listed(fact: StatedFact, name: str) -> tuple[str, ...]:
    parts = (part.strip(' "') for part in str(fact.values.get(name, "")).split(","))
    return tuple(part for part in parts if part)


def _set(value: Value) -> str:
    return "" if str(value) in _UNSET else str(value)
