"""Asks a cluster for the partitions of a topic and their offsets."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from msgspec import Struct

from connectors.kafka.options import resolved
from connectors.kafka.refusals import AWAY, MISSING, PASSING, explained
from engine.errors import SourceAway, SourceDenied, SourceError

LOG = logging.getLogger("tocsin.kafka")
LOG.addHandler(logging.NullHandler())  # for librdkafka's own lines; our errors have what matters of them
ANSWER_S = 5.0
AGAIN_S = 0.1
# While no broker answers, other sources of the job wait for no more than a quarter of the time:
AWAY_ANSWER_S = 1.0
REST_S = 3.0
# A client may keep waiting for one broker that is gone and not notice the others; after this time a new one is made.
CLIENT_S = 15.0

T = TypeVar("T")

_CLUSTERS: dict[tuple[int, str], Cluster] = {}


class Log(Struct, frozen=True):
    """A topic as it is now, by partition: the first offset of its log, and its last stable offset (the end of what consumers
    with read_committed get). A topic that was deleted and created again has another `id`; it is empty where brokers have none
    (before 2.8)."""

    id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]


class _BrokerOutage(Struct, frozen=True):
    """No broker answered: until `rests_until` (monotonic clock) every request raises `why` at once."""

    why: SourceError
    rests_until: float


class Cluster:
    """The cluster behind `servers` (`host:port,...`), with librdkafka's `options`. It connects on the first request.

    Every request raises SourceMissing when the topic does not exist, SourceDenied, SourceAway when no broker answers (at once
    if none did a moment ago), and SourceError for other errors of a broker. A denial after an earlier success is SourceAway: a
    broker that starts may not have the passwords yet.
    """

    def __init__(self, servers: str, options: Mapping[str, str]) -> None:
        self.servers = servers
        self._connection_error: KafkaError | None = None  # the last one that librdkafka reported
        self._existing: set[str] = set()  # the topics that existed when they were last asked for
        self._outage: _BrokerOutage | None = None
        self._admitted = False  # whether a request has ever succeeded
        self._options = dict(options)
        self._connect()

    @staticmethod
    def of(servers: str, options: Mapping[str, str]) -> Cluster:
        """Return the Cluster for these settings; there is one in a process."""
        key = os.getpid(), json.dumps([servers, dict(options)], sort_keys=True)
        if key not in _CLUSTERS:
            _CLUSTERS[key] = Cluster(servers, options)
        return _CLUSTERS[key]

    def look(self, topic: str) -> Log:
        """Return the present partitions and offsets of `topic`."""
        return self._answered(topic, lambda within_s: self._log(topic, within_s))

    def topics(self) -> frozenset[str]:
        """Return the names of the topics that may be seen, without Kafka's own; empty when they cannot be listed."""
        try:
            names = self._admin.list_topics(timeout=ANSWER_S).topics
        except KafkaException:
            return frozenset()
        return frozenset(name for name in names if not name.startswith("__"))

    def since(self, topic: str, log: Log, at: datetime) -> dict[int, int]:
        """Return, by partition, the offset of the first record with a timestamp of `at` or later; the end if there is none."""
        spec = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
        offsets = self._answered(topic, lambda within_s: self._offsets(topic, log.ends, spec, within_s))
        return {partition: log.ends[partition] if offset < 0 else offset for partition, offset in offsets.items()}

    def _answered(self, topic: str, request: Callable[[float], T]) -> T:
        """Return the result of `request`; its argument is the number of seconds that it may take. Errors that pass are retried
        within that time."""
        if self._outage is not None and time.monotonic() < self._outage.rests_until:
            raise self._outage.why.with_traceback(None)
        within_s = AWAY_ANSWER_S if self._outage else ANSWER_S
        deadline = time.monotonic() + within_s
        while True:
            try:
                answer = request(within_s)
            except KafkaException as error:
                self._admin.poll(AGAIN_S)
                if not self._may_pass(error.args[0], topic) or time.monotonic() > deadline:
                    raise self._refusal(error.args[0], topic) from None
            else:
                self._outage = self._connection_error = None
                return answer

    def _connect(self) -> None:
        self._admin = client(AdminClient, connection(self.servers, self._options) | {"error_cb": self._on_error})
        self._connected_at = time.monotonic()

    def _may_pass(self, error: KafkaError, topic: str) -> bool:
        """Tell whether an error may pass in a moment: a partition is being created or moved, or a broker has just started and
        does not have the topics yet."""
        return error.code() in PASSING or (error.code() in MISSING and topic in self._existing)

    def _refusal(self, error: KafkaError, topic: str) -> SourceError:
        refusal = explained(error, self.servers, topic, self._connection_error)
        self._existing.discard(topic)
        if error.code() not in AWAY:
            return refusal
        if self._admitted and isinstance(refusal, SourceDenied):
            refusal = SourceAway(self.servers, str(refusal))
        if time.monotonic() - self._connected_at > CLIENT_S:
            self._connect()
        self._outage = _BrokerOutage(refusal, time.monotonic() + REST_S)
        return refusal

    def _log(self, topic: str, within_s: float) -> Log:
        # describing a topic never creates it; a request for its metadata might
        answers = self._admin.describe_topics(TopicCollection([topic]), request_timeout=within_s)
        description = answers[topic].result()
        self._admitted = True
        self._existing.add(topic)
        partitions = dict.fromkeys(partition.id for partition in description.partitions)
        begins = self._offsets(topic, partitions, OffsetSpec.earliest(), within_s)
        return Log(_id(description), begins, self._offsets(topic, partitions, OffsetSpec.latest(), within_s))

    def _offsets(self, topic: str, partitions: Iterable[int], spec: OffsetSpec, within_s: float) -> dict[int, int]:
        specs = {TopicPartition(topic, partition): spec for partition in partitions}
        if not specs:
            return {}
        answers = self._admin.list_offsets(specs, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=within_s)
        return {place.partition: valid_offset(answer.result().offset) for place, answer in answers.items()}

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # this one has no reason
            self._connection_error = error


def valid_offset(offset: int) -> int:
    """Return an offset of librdkafka's answer; OFFSET_END means that no record is that late. Raises KafkaException for
    OFFSET_INVALID.

    While a leader dies, librdkafka answers for its partitions with OFFSET_INVALID, and no error.
    """
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the leader of a partition has not answered"))
    return offset


def _id(description: Any) -> str:
    """Return the id of a described topic; empty when it has none, or only zeros."""
    uuid = description.topic_id
    return "" if uuid is None or not (uuid.get_most_significant_bits() or uuid.get_least_significant_bits()) else str(uuid)


def connection(servers: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings for librdkafka. Raises SourceError when a secret that the options refer to does not exist."""
    return {"client.id": "tocsin", "reconnect.backoff.max.ms": 2000, **resolved(options), "bootstrap.servers": servers}


def client(kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """Return a client of librdkafka. Raises SourceError when librdkafka does not accept the settings."""
    try:
        return kind(dict(settings), logger=LOG)
    except (KafkaException, ValueError, TypeError) as error:
        cause = error.args[0]
        why = cause.str() if isinstance(cause, KafkaError) else cause
        raise SourceError(f"librdkafka does not take the options of the kafka source: {why}") from None
