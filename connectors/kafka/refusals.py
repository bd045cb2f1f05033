"""Turns errors of librdkafka and of brokers into ours, with a sentence each: what passes by itself, what does not exist, what
the user has to change. Pure."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing

AWAY = frozenset((KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE))
MISSING = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION))
# Errors of a broker that starts, stops, or hands over its partitions. In admin responses librdkafka marks none as retriable.
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
        KafkaError._NOENT,  # "No leaders found": the error of librdkafka's admin calls when the only broker has just gone
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
# librdkafka's text around a reason: the connection in front of it, the duration behind it
_AROUND = re.compile(r"^[a-z_]+://\S+: | \(after \d+ms in state .*\)$")


def explained(error: KafkaError, servers: str, topic: str, connection_error: KafkaError | None = None) -> SourceError:
    """Return the SourceError for an error of librdkafka or of a broker.

    Args:
        connection_error: the last one that librdkafka reported. When no broker answers, only it has the reason.
    """
    code, text = error.code(), error.str()
    if code in MISSING:
        return SourceMissing(f"the topic {topic} does not exist on {servers}")
    if code in _FORBIDDEN:
        return SourceDenied(f"{servers} refuses to let us read {topic}: {text}; check the rights of this user")
    for cause in (error, connection_error) if code in AWAY else (error,):
        if cause is not None and cause.code() in _SHUT_OUT:
            return SourceDenied(f"{servers} does not let us in: {reason(cause)}; {_SHUT_OUT[cause.code()]}")
    if code in AWAY:
        why = reason(connection_error) if connection_error is not None else _no_answer(text)
        return SourceAway(servers, f"no broker of {servers} answers: {why}; check the address and security.protocol")
    if error.retriable() or code in PASSING:
        return SourceAway(f"the topic {topic} on {servers}", f"{topic} on {servers} cannot be read now: {text}")
    return SourceError(f"{topic} on {servers} cannot be read: {text}")


def reason(error: KafkaError) -> str:
    """Return the text of an error without the connection and the duration in it, so that it is the same every time."""
    return str(_AROUND.sub("", error.str()))


def _no_answer(text: str) -> str:
    """Return the reason for an error without a reported one, as when a connection is accepted and closed again (a plain client
    at a listener with TLS)."""
    return f"nothing comes back ({text})"
