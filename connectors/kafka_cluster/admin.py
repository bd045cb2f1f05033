"""Asks a Kafka cluster, with a closed set of requests that only read.

    every round      DescribeCluster, Metadata (all topics), DescribeQuorum, ListGroups (each broker)
    in addition      Metadata of topics that are missing, whether they are gone; DescribeConfigs of topics that are new;
                     DescribeGroups (each coordinator) of groups that are new or in another state
    every 5 minutes  DescribeGroups, OffsetFetch (each coordinator), ListOffsets (each leader)
    once an hour     DescribeConfigs (topics, brokers), DescribeLogDirs (each broker), the features in ApiVersions

An audit asks some more (surveying.py). Besides these kafka-python itself sends ApiVersions, Metadata and FindCoordinator, and
what authentication takes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    IncompatibleBrokerVersion,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)
from msgspec import Struct
from msgspec.structs import replace

from connectors.kafka_cluster.features import feature_rows
from connectors.kafka_cluster.groups import AT_ONCE, committed, coordinators, ends, members
from connectors.kafka_cluster.options import client_options
from connectors.kafka_cluster.printing import (
    ClusterInventory,
    TopicOffsets,
    broker_rows,
    broker_settings,
    gone_group,
    gone_line,
    gone_topics,
    lag_of_topics,
    lag_rows,
    lag_table,
    lines_of,
    log_dir_lines,
    quorum_row,
    settings_of,
    topic_rows,
    with_absent,
    with_unlisted,
)
from connectors.kafka_cluster.surveying import survey
from engine.errors import SourceAway, SourceDenied, SourceError
from engine.model.visible import visible

_LOG = logging.getLogger("kafka")
_LOG.addHandler(logging.NullHandler())  # our errors have what matters of its messages
_LOG.propagate = False

BOOTSTRAP_MS, ANSWER_MS, AGAIN_MS = 10_000, 15_000, 300
LAGS_EVERY_S = 300.0
TOPIC_SETTINGS = (
    "cleanup.policy",
    "max.message.bytes",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)
BROKER_SETTINGS = (
    "auto.create.topics.enable",
    "default.replication.factor",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "offsets.topic.replication.factor",
    "replica.fetch.max.bytes",
    "replica.lag.time.max.ms",
    "transaction.state.log.min.isr",
    "transaction.state.log.replication.factor",
    "unclean.leader.election.enable",
)
_UNTRUSTED = "certificate verify failed"  # OpenSSL
_CLUSTER_RIGHTS = ("DESCRIBE", "DESCRIBE_CONFIGS")


class KafkaEndpoint(Struct, frozen=True):
    """The brokers that are asked first (`host:port,...`), and the options of the connection (see client_options)."""

    bootstrap_servers: str
    options: Mapping[str, str] = {}


@dataclass
class ClusterAsker:
    """Asks one Kafka cluster; the connection stays open until a request fails. See asking.Asker.

    Attributes:
        missing_rights: sentences about rights that the user lacks, as of the last round.
    """

    endpoint: KafkaEndpoint
    missing_rights: tuple[str, ...] = ()
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _client: Any = field(default=None, repr=False)
    _is_emptied: bool = field(default=False, repr=False)  # the last round listed no topic, and the one before did
    _lags_at_s: float = field(default=float("-inf"), repr=False)  # when lags were last asked for

    @property
    def resource(self) -> str:
        """The brokers that are asked first."""
        return self.endpoint.bootstrap_servers

    @property
    def inventory(self) -> type[ClusterInventory]:
        """The type of what one round learns."""
        return ClusterInventory

    def ask(self, before: ClusterInventory | None, whole: bool) -> tuple[ClusterInventory, Sequence[str]]:
        """Return what the cluster holds, and the lines: its id, and what has changed."""
        try:
            if self._client is None:
                self._client = _client_of(self.endpoint)
            return self._round(before, whole)
        except KafkaError as error:
            self.close()
            raise _explained(error, self.resource) from error
        except SourceError:
            self.close()
            raise

    def audit(self, now: datetime) -> tuple[Sequence[str], Sequence[str]]:
        """Ask once, for everything that an audit judges; return the lines, and sentences about what cannot be seen."""
        inventory, lines = self.ask(None, whole=True)
        try:
            more, hidden = survey(self._client, inventory, lines, now)
        except KafkaError as error:
            self.close()
            raise _explained(error, self.resource) from error
        return [*lines, *more], [*self.missing_rights, *hidden]

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _round(self, before: ClusterInventory | None, whole: bool) -> tuple[ClusterInventory, list[str]]:
        client = self._client
        cluster, topics = client.describe_cluster(), client.describe_topics()
        self.missing_rights = tuple(_missing(cluster, topics))
        self._check_not_emptied(topics, before)
        live = {broker["broker_id"]: broker for broker in cluster["brokers"] if not broker.get("is_fenced")}
        listed, complete = coordinators(client, list(live))
        inventory = ClusterInventory(
            str(cluster["cluster_id"]),
            broker_rows(cluster),
            self._quorum(),
            topic_rows(topics),
            features=self._features() if whole or before is None else before.features,
        )
        gone, unsure = self._gone(gone_topics(before, inventory))
        if before is not None and unsure:
            inventory = replace(inventory, topics={**inventory.topics, **{name: before.topics[name] for name in unsure}})
        inventory = _with_brokers_away(inventory, before, not self.missing_rights and _sees_all(cluster, topics, listed))
        just_missing = before is not None and not set(inventory.unlisted) <= set(before.unlisted)
        complete = complete and not just_missing and all(p["leader_id"] >= 0 for p in _places_of_groups(topics))
        inventory = replace(inventory, settings=self._settings(inventory, before, whole))
        inventory, left = _with_groups(inventory, before, {name: group.state for name, group in listed.items()}, complete)
        asks_lags = whole or self.clock() - self._lags_at_s >= LAGS_EVERY_S
        fresh = listed if asks_lags else {name: listed[name] for name in _changed_groups(inventory, before) if name in listed}
        addresses = {id_: f"{broker['host']}:{broker['port']}" for id_, broker in live.items()}
        inventory = replace(inventory, members={**inventory.members, **members(client, fresh, addresses)})
        elapsed_s = max(0.0, self.clock() - self._lags_at_s) if self._lags_at_s > float("-inf") else 0.0
        offsets, reached = self._offsets(inventory, topics) if asks_lags else ({}, {})
        present = _present(offsets, inventory, topics)
        lags = {
            group: lag_of_topics(group, of_group, reached, inventory.groups[group], inventory.lags.get(group), elapsed_s)
            for group, of_group in present.items()
        }
        inventory = replace(inventory, lags={**inventory.lags, **lags})
        lines = [*lines_of(before, inventory, whole), *map(gone_line, gone), *map(gone_group, left)]
        if whole:
            lines += [
                row for id_, configs in self._configs_of_brokers(list(live)) for row in broker_settings(str(id_), configs)
            ]
            lines += [line for id_ in live for line in self._log_dirs(id_)]
            lines += lag_table([row for group, places in offsets.items() for row in lag_rows(group, places, reached)])
        return inventory, lines

    def _check_not_emptied(self, topics: Sequence[Mapping[str, Any]], before: ClusterInventory | None) -> None:
        """Raise SourceAway in the first round in which topics are missing altogether: a broker that has just started may know
        none."""
        was_emptied, self._is_emptied = self._is_emptied, not topics and before is not None and bool(before.topics)
        if self._is_emptied and not was_emptied:
            raise SourceAway(self.resource, f"the brokers of {self.resource} list no topic any more; they are asked again")

    def _quorum(self) -> str:
        try:
            return quorum_row(self._client.describe_metadata_quorum())
        except (AuthorizationError, IncompatibleBrokerVersion, KeyError, ValueError):
            return ""  # a cluster with ZooKeeper, or a user who may not see it
        except KafkaError as error:
            if isinstance(error, KafkaTimeoutError | KafkaConnectionError):
                raise
            return ""

    def _features(self) -> Mapping[str, str]:
        try:
            return feature_rows(self._client.describe_features())
        except (IncompatibleBrokerVersion, AuthorizationError):
            return {}  # before 2.7

    def _offsets(
        self, inventory: ClusterInventory, topics: Sequence[Mapping[str, Any]]
    ) -> tuple[Mapping[str, TopicOffsets], TopicOffsets]:
        """Return the offsets that each group has committed, and the ends of their partitions, as far as these have leaders."""
        offsets = committed(self._client, sorted(inventory.groups))
        led = {(t["name"], p["partition_index"]) for t in topics for p in t["partitions"] if p["leader_id"] >= 0}
        wanted = {place for of_group in offsets.values() for place in of_group}
        self._lags_at_s = self.clock()
        return offsets, ends(self._client, sorted(wanted & led))

    def _log_dirs(self, broker: int) -> Iterator[str]:
        try:
            (answer,) = self._client.describe_log_dirs(brokers=[broker])
        except KafkaError:  # it has just gone, or the user may not see them
            return
        yield from log_dir_lines(broker, answer["log_dirs"])

    def _gone(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return those topics of `names` that the brokers do not know any more, and the others."""
        answers = self._client.describe_topics(list(names)) if names else []
        unknown = {topic["name"] for topic in answers if topic["error_code"] == 3}
        return [name for name in names if name in unknown], [name for name in names if name not in unknown]

    def _settings(self, inventory: ClusterInventory, before: ClusterInventory | None, whole: bool) -> Mapping[str, str]:
        """Return what is set for each topic: asked for all if `whole`, else for topics that are new."""
        earlier = {} if before is None or whole else before.settings
        new_names = [name for name in inventory.topics if name not in earlier]
        settings = {name: earlier[name] for name in inventory.topics if name in earlier}
        for at in range(0, len(new_names), AT_ONCE):
            names = new_names[at : at + AT_ONCE]
            resources = [ConfigResource(ConfigResourceType.TOPIC, name, TOPIC_SETTINGS) for name in names]
            answer = self._client.describe_configs(resources, config_filter="all").get("topic", {})
            settings |= {name: settings_of(answer.get(name, {})) for name in names}
        return settings

    def _configs_of_brokers(self, live: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for id_ in live:
            resource = ConfigResource(ConfigResourceType.BROKER, str(id_), BROKER_SETTINGS)
            try:
                answer = self._client.describe_configs([resource], include_synonyms=True, config_filter="all")
            except KafkaError:  # it has just gone
                continue
            if configs := answer.get("broker", {}).get(str(id_)):
                yield id_, configs


def _with_groups(
    inventory: ClusterInventory, before: ClusterInventory | None, states: Mapping[str, str], complete: bool
) -> tuple[ClusterInventory, list[str]]:
    """Return the inventory with the groups and what was known of them, and the groups that are gone, in order. When a broker
    has no answer, its groups are as they were."""
    if before is None:
        return replace(inventory, groups=states), []
    groups = states if complete else {**before.groups, **states}
    left = sorted(before.groups.keys() - groups.keys())
    present = {name: row for name, row in before.members.items() if name in groups}
    lags = {name: rows for name, rows in before.lags.items() if name in groups}
    return replace(inventory, groups=groups, members=present, lags=lags), left


def _with_brokers_away(inventory: ClusterInventory, before: ClusterInventory | None, is_sure: bool) -> ClusterInventory:
    """Return the inventory with the brokers that are not listed: absent ones, and those of the round before."""
    rows_before = {} if before is None else before.brokers
    inventory = replace(inventory, brokers=with_absent(inventory.brokers, inventory.topics, rows_before))
    return inventory if before is None else with_unlisted(inventory, before, is_sure)


def _sees_all(cluster: Mapping[str, Any], topics: Sequence[Mapping[str, Any]], groups: Collection[str]) -> bool:
    """Return whether a broker that is neither listed nor assigned partitions is removed: brokers since 4.0 list all; earlier
    ones do not tell of topics that the user may not see, such as that of the groups, which is there when there are groups."""
    lists_all = all("is_fenced" in broker for broker in cluster["brokers"])
    return lists_all or not groups or any(_places_of_groups(topics))


def _places_of_groups(topics: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the partitions that coordinators of groups lead."""
    yield from (partition for topic in topics if topic["name"] == "__consumer_offsets" for partition in topic["partitions"])


def _present(
    offsets: Mapping[str, TopicOffsets], inventory: ClusterInventory, topics: Sequence[Mapping[str, Any]]
) -> Mapping[str, TopicOffsets]:
    """Return the offsets, by group, of those partitions that there are: a group keeps offsets of topics that were deleted."""
    counts = {topic["name"]: len(topic["partitions"]) for topic in topics if not topic["error_code"]}
    return {
        group: {
            at: offset for at, offset in of_group.items() if at[0] in inventory.topics and at[1] < counts.get(at[0], at[1] + 1)
        }
        for group, of_group in offsets.items()
    }


def _changed_groups(inventory: ClusterInventory, before: ClusterInventory | None) -> list[str]:
    states = {} if before is None else before.groups
    return [name for name, state in inventory.groups.items() if states.get(name) != state]


class _AdminClient(KafkaAdminClient):  # type: ignore[misc]
    """kafka-python leaves the thread and the sockets of a client behind that cannot connect; this one does not."""

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except Exception:
            if hasattr(self, "_net"):
                self._client.close()
                self._net.stop()
            raise


class _Reasons(logging.Handler):
    """Collects why connections fail: a client that gives up says only that it could not connect in time."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self.errors += [argument for argument in arguments if isinstance(argument, Exception)]

    def telling(self) -> Exception | None:
        """Return the error that says more than that nothing answers; None without one."""
        telling = (SaslAuthenticationFailedError, InvalidReceiveError)
        return next((error for error in self.errors if isinstance(error, telling) or _UNTRUSTED in str(error)), None)


def _client_of(endpoint: KafkaEndpoint) -> Any:
    """Return a connected client. Raises KafkaError, or the error by which its connections failed."""
    servers = [server.strip() for server in endpoint.bootstrap_servers.split(",") if server.strip()]
    options = {"client_id": "tocsin", "reconnect_backoff_ms": AGAIN_MS, **client_options(endpoint.options)}
    reasons = _Reasons()
    _LOG.addHandler(reasons)
    try:
        return _AdminClient(
            bootstrap_servers=servers, bootstrap_timeout_ms=BOOTSTRAP_MS, request_timeout_ms=ANSWER_MS, **options
        )
    except KafkaTimeoutError as error:
        raise reasons.telling() or error from error
    finally:
        _LOG.removeHandler(reasons)


def _missing(cluster: Mapping[str, Any], topics: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each right that is missing, where the brokers tell which rights there are."""
    grant = "grant it with kafka-acls.sh --add --allow-principal User:NAME --operation"
    rights = cluster.get("authorized_operations")
    if isinstance(rights, list):
        for right in _CLUSTER_RIGHTS:
            if right not in rights:
                yield f"the right {right} on the cluster is missing; {grant} {_operation(right)} --cluster"
    shy = [
        t["name"]
        for t in topics
        if isinstance(t.get("authorized_operations"), list) and "DESCRIBE_CONFIGS" not in t["authorized_operations"]
    ]
    if shy:
        which = f"{len(shy)} topics, {shy[0]} among them"
        yield f"the right DESCRIBE_CONFIGS on {which}, is missing; {grant} DescribeConfigs --topic '*'"


def _operation(right: str) -> str:
    return "".join(word.capitalize() for word in right.split("_"))


def _explained(error: KafkaError, place: str) -> SourceError:
    if isinstance(error, SaslAuthenticationFailedError):
        return SourceDenied(f"{place} does not let us in; check sasl.mechanism, sasl.username and sasl.password")
    if _UNTRUSTED in str(error):
        why = visible(str(error).partition(_UNTRUSTED)[2].strip(": "))
        return SourceDenied(f"the certificate of {place} cannot be trusted ({why}); name its authority with ssl.ca.location")
    if isinstance(error, InvalidReceiveError):
        return SourceDenied(f"{place} does not speak plain Kafka; with TLS, security.protocol in options is SSL or SASL_SSL")
    if isinstance(error, AuthorizationError):
        return SourceDenied(
            f"{place} does not allow it ({type(error).__name__}); see docs/asking.md for the rights that are needed"
        )
    if isinstance(error, KafkaTimeoutError | KafkaConnectionError):
        what = "the addresses, and security.protocol and the credentials in options"
        return SourceAway(place, f"no broker of {place} answers; check {what}")
    return SourceAway(place, f"Kafka at {place} cannot be asked ({type(error).__name__})")
