"""What a cluster says of a topic: its partitions and their offsets; and its refusals as sentences."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from connectors.kafka.options import resolved
from engine.errors import SourceDenied, SourceError, SourceMissing

LOG = logging.getLogger("tocsin.kafka")
LOG.addHandler(logging.NullHandler())  # librdkafka's own lines; what matters of them is in our errors
ANSWER_S = 10.0
AGAIN_S = 0.1

_AWAY = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE)
_LEADERLESS = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.OFFSET_NOT_AVAILABLE)
_DENIED = (
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
_CLUSTERS: dict[tuple[int, str], Cluster] = {}


class Unreachable(SourceError):
    """No broker answers, or a partition has no leader: it may be different in a moment."""


class Cluster:
    """The cluster behind `servers` (`host:port,...`), with librdkafka's `options`; connects when it is asked something."""

    def __init__(self, servers: str, options: Mapping[str, str]) -> None:
        self.servers = servers
        self._said = ""  # the last thing librdkafka told of its connections
        self._admin = client(AdminClient, connection(servers, options) | {"error_cb": self._heard})

    @staticmethod
    def of(servers: str, options: Mapping[str, str]) -> Cluster:
        """Return the one Cluster of this process for these settings."""
        key = os.getpid(), json.dumps([servers, dict(options)], sort_keys=True)
        if key not in _CLUSTERS:
            _CLUSTERS[key] = Cluster(servers, options)
        return _CLUSTERS[key]

    def earliest(self, topic: str) -> dict[int, int]:
        """Return where each partition's log begins. Raises SourceMissing, SourceDenied, Unreachable, SourceError."""
        return self._offsets(topic, OffsetSpec.earliest())

    def ends(self, topic: str) -> dict[int, int]:
        """Return the last stable offset of each partition: no open transaction reaches below it. Raises as `earliest`."""
        return self._offsets(topic, OffsetSpec.latest())

    def since(self, topic: str, at: datetime) -> dict[int, int]:
        """Return the first offset of each partition whose record was stamped at `at` or later, its end when none was."""
        found = self._offsets(topic, OffsetSpec.for_timestamp(int(at.timestamp() * 1000)))
        ends = self.ends(topic) if min(found.values(), default=0) < 0 else {}
        return {partition: ends.get(partition, 0) if offset < 0 else offset for partition, offset in found.items()}

    def _offsets(self, topic: str, spec: OffsetSpec) -> dict[int, int]:
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return self._asked(topic, spec)
            except KafkaException as error:
                self._admin.poll(AGAIN_S)  # a partition is without a leader for a moment when it is made or moves
                if error.args[0].code() not in _LEADERLESS or time.monotonic() > deadline:
                    raise explained(error.args[0], self.servers, topic, self._said) from None

    def _asked(self, topic: str, spec: OffsetSpec) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in self._partitions(topic)}
        if not wanted:
            return {}
        answers = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=ANSWER_S)
        return {place.partition: answer.result().offset for place, answer in answers.items()}

    def _partitions(self, topic: str) -> list[int]:
        # describing a topic never makes it, as asking for its metadata might
        answers = self._admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_S)
        return [partition.id for partition in answers[topic].result().partitions]

    def _heard(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._said:
            self._said = error.str()


def connection(servers: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return librdkafka's settings. Raises SourceError when a secret is not where the options say."""
    return {"client.id": "tocsin", **resolved(options), "bootstrap.servers": servers}


def client(kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """Return a client of librdkafka. Raises SourceError when it does not take the settings."""
    try:
        return kind(dict(settings), logger=LOG)
    except (KafkaException, ValueError, TypeError) as error:
        said = error.args[0]
        why = said.str() if isinstance(said, KafkaError) else said
        raise SourceError(f"librdkafka does not take the options of the kafka source: {why}") from None


def explained(error: KafkaError, servers: str, topic: str, detail: str = "") -> SourceError:
    """Return the sentence for a refusal of librdkafka or of a broker."""
    code, said = error.code(), error.str()
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return SourceMissing(f"the topic {topic} does not exist on {servers}")
    if code in _DENIED:
        return SourceDenied(f"{servers} refuses to let us read {topic}: {said}")
    if code in _AWAY:
        return Unreachable(f"no broker of {servers} answers: {detail or said}; check the address and security.protocol")
    if error.retriable() or code in _LEADERLESS:
        return Unreachable(f"{topic} on {servers} cannot be read now: {said}")
    return SourceError(f"{topic} on {servers} cannot be read: {said}")
