"""What librdkafka and brokers refuse, as sentences: what passes by itself, what is not there, what somebody must mend. Pure."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing

AWAY = frozenset((KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE))
MISSING = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION))
# Of a broker that starts, stops, or hands its partitions over. librdkafka calls none of them retriable in an admin answer.
PASSING = frozenset(
    (
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.NOT_CONTROLLER,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.INCONSISTENT_TOPIC_ID,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError._NOENT,  # "No leaders found": what librdkafka's admin calls say when the only broker has just gone
        KafkaError._DESTROY_BROKER,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_CACHE,
        KafkaError._RETRY,
    )
)
_FORBIDDEN = frozenset(
    (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
)
_CREDENTIALS = "check sasl.mechanism, sasl.username and sasl.password"
_SHUT_OUT = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    KafkaError.ILLEGAL_SASL_STATE: _CREDENTIALS,
    KafkaError._SSL: "check ssl.ca.location and the certificate of the broker",
}
# What librdkafka puts around a reason: the connection in front, how long it took behind.
_AROUND = re.compile(r"^[a-z_]+://\S+: | \(after \d+ms in state .*\)$")


def explained(error: KafkaError, servers: str, topic: str, heard: KafkaError | None = None) -> SourceError:
    """Return the sentence for a refusal of librdkafka or of a broker.

    `heard` is the last thing librdkafka told of its connections: why nobody answers is said there only.
    """
    code, said = error.code(), error.str()
    if code in MISSING:
        return SourceMissing(f"the topic {topic} does not exist on {servers}")
    if code in _FORBIDDEN:
        return SourceDenied(f"{servers} refuses to let us read {topic}: {said}; check the rights of this user")
    for told in (error, heard) if code in AWAY else (error,):
        if told is not None and told.code() in _SHUT_OUT:
            return SourceDenied(f"{servers} does not let us in: {reason(told)}; {_SHUT_OUT[told.code()]}")
    if code in AWAY:
        why = reason(heard) if heard is not None else _unheard(said)
        return SourceAway(servers, f"no broker of {servers} answers: {why}; check the address and security.protocol")
    if error.retriable() or code in PASSING:
        return SourceAway(f"the topic {topic} on {servers}", f"{topic} on {servers} cannot be read now: {said}")
    return SourceError(f"{topic} on {servers} cannot be read: {said}")


def reason(error: KafkaError) -> str:
    """Return what an error says, the same each time: without the connection it is about and how long it took."""
    return str(_AROUND.sub("", error.str()))


def _unheard(said: str) -> str:
    """A connection that is taken and dropped again (a plain client at a listener with TLS) gives no reason at all."""
    return f"nothing comes back ({said})"
