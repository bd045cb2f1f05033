"""What a cluster says of a topic: its partitions and their offsets."""

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
LOG.addHandler(logging.NullHandler())  # librdkafka's own lines; what matters of them is in our errors
ANSWER_S = 5.0
AGAIN_S = 0.1
# While nobody answers, other sources of the job wait for no more than a quarter of the time:
AWAY_ANSWER_S = 1.0
REST_S = 3.0
# A client may wait for the one broker that has gone, and not see that others are there; a new one looks for itself.
CLIENT_S = 15.0

T = TypeVar("T")

_CLUSTERS: dict[tuple[int, str], Cluster] = {}


class Log(Struct, frozen=True):
    """A topic as it is now: for each partition where its log begins, and its last stable offset, which no open transaction
    reaches below. A topic made anew has another `id`; it is empty where brokers give none (before 2.8)."""

    id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]


class _Outage(Struct, frozen=True):
    why: SourceError
    rests_until: float  # by the monotonic clock


class Cluster:
    """The cluster behind `servers` (`host:port,...`), with librdkafka's `options`; connects when it is asked something.

    Every question raises SourceMissing when there is no such topic, SourceDenied, SourceAway when nobody answers (and at once
    when nobody did a moment ago), and SourceError for what else a broker says. What shuts us out after it has let us in is
    away: a broker that starts may not know the passwords yet.
    """

    def __init__(self, servers: str, options: Mapping[str, str]) -> None:
        self.servers = servers
        self._said: KafkaError | None = None  # the last thing librdkafka told of its connections
        self._known: set[str] = set()  # the topics that were there when they were last looked for
        self._outage: _Outage | None = None
        self._let_in = False
        self._options = dict(options)
        self._connect()

    @staticmethod
    def of(servers: str, options: Mapping[str, str]) -> Cluster:
        """Return the one Cluster of this process for these settings."""
        key = os.getpid(), json.dumps([servers, dict(options)], sort_keys=True)
        if key not in _CLUSTERS:
            _CLUSTERS[key] = Cluster(servers, options)
        return _CLUSTERS[key]

    def look(self, topic: str) -> Log:
        """Return what `topic` is now."""
        return self._answered(topic, lambda within_s: self._log(topic, within_s))

    def since(self, topic: str, log: Log, at: datetime) -> dict[int, int]:
        """Return the first offset of each partition whose record was stamped at `at` or later, its end when none was."""
        spec = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
        found = self._answered(topic, lambda within_s: self._offsets(topic, log.ends, spec, within_s))
        return {partition: log.ends[partition] if offset < 0 else offset for partition, offset in found.items()}

    def _answered(self, topic: str, question: Callable[[float], T]) -> T:
        """Return the answer to `question`, which is given the seconds that it may take."""
        if self._outage is not None and time.monotonic() < self._outage.rests_until:
            raise self._outage.why.with_traceback(None)
        within_s = AWAY_ANSWER_S if self._outage else ANSWER_S
        deadline = time.monotonic() + within_s
        while True:
            try:
                answer = question(within_s)
            except KafkaException as error:
                self._admin.poll(AGAIN_S)
                if not self._may_pass(error.args[0], topic) or time.monotonic() > deadline:
                    raise self._refusal(error.args[0], topic) from None
            else:
                self._outage = self._said = None
                return answer

    def _connect(self) -> None:
        self._admin = client(AdminClient, connection(self.servers, self._options) | {"error_cb": self._heard})
        self._connected_at = time.monotonic()

    def _may_pass(self, error: KafkaError, topic: str) -> bool:
        """Tell whether it may be otherwise in a moment: a partition is made or moves, or a broker has only just come up and
        does not know the topics yet."""
        return error.code() in PASSING or (error.code() in MISSING and topic in self._known)

    def _refusal(self, error: KafkaError, topic: str) -> SourceError:
        refusal = explained(error, self.servers, topic, self._said)
        self._known.discard(topic)
        if error.code() not in AWAY:
            return refusal
        if self._let_in and isinstance(refusal, SourceDenied):
            refusal = SourceAway(self.servers, str(refusal))
        if time.monotonic() - self._connected_at > CLIENT_S:
            self._connect()
        self._outage = _Outage(refusal, time.monotonic() + REST_S)
        return refusal

    def _log(self, topic: str, within_s: float) -> Log:
        # describing a topic never makes it, as asking for its metadata might
        answers = self._admin.describe_topics(TopicCollection([topic]), request_timeout=within_s)
        said = answers[topic].result()
        self._let_in = True
        self._known.add(topic)
        partitions = dict.fromkeys(partition.id for partition in said.partitions)
        begins = self._offsets(topic, partitions, OffsetSpec.earliest(), within_s)
        return Log(_id(said), begins, self._offsets(topic, partitions, OffsetSpec.latest(), within_s))

    def _offsets(self, topic: str, partitions: Iterable[int], spec: OffsetSpec, within_s: float) -> dict[int, int]:
        wanted = {TopicPartition(topic, partition): spec for partition in partitions}
        if not wanted:
            return {}
        answers = self._admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=within_s)
        return {place.partition: told_offset(answer.result().offset) for place, answer in answers.items()}

    def _heard(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # that gives no reason
            self._said = error


def told_offset(offset: int) -> int:
    """Return the offset that a broker has told; OFFSET_END stands for none of that time. Raises KafkaException when none has.

    While a leader dies, librdkafka answers for its partitions with OFFSET_INVALID, and no error.
    """
    if offset == OFFSET_INVALID:
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "the leader of a partition has not answered"))
    return offset


def _id(said: Any) -> str:
    """Return the id of a described topic; zeros stand for none."""
    uuid = said.topic_id
    return "" if uuid is None or not (uuid.get_most_significant_bits() or uuid.get_least_significant_bits()) else str(uuid)


def connection(servers: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return librdkafka's settings. Raises SourceError when a secret is not where the options say."""
    return {"client.id": "tocsin", "reconnect.backoff.max.ms": 2000, **resolved(options), "bootstrap.servers": servers}


def client(kind: type[Any], settings: Mapping[str, Any]) -> Any:
    """Return a client of librdkafka. Raises SourceError when it does not take the settings."""
    try:
        return kind(dict(settings), logger=LOG)
    except (KafkaException, ValueError, TypeError) as error:
        said = error.args[0]
        why = said.str() if isinstance(said, KafkaError) else said
        raise SourceError(f"librdkafka does not take the options of the kafka source: {why}") from None
