"""Put a line into a topic, as a record of its own."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connectors.kafka.cluster import client, connection
from connectors.kafka.refusals import explained, reason
from engine.errors import SourceAway, SourceDenied

WITHIN_S = 15.0
KEY = "tocsin-prove"
_CONSUMER_OPTIONS = ("group.", "fetch.", "isolation.", "auto.offset.", "enable.auto.", "max.poll.", "session.", "queued.")


def put_line(servers: str, options: Mapping[str, str], topic: str, line: str) -> str:
    """Produce `line` to `topic` with the options of its source; return the stream, as `topic-0`.

    The record has a key only where the topic takes none without (`cleanup.policy=compact`).

    Raises SourceError: SourceDenied when this user may not write to the topic, which reading it does not need.
    """
    usable = {name: value for name, value in options.items() if not name.startswith(_CONSUMER_OPTIONS)}
    settings = {**connection(servers, usable), "message.timeout.ms": int(WITHIN_S * 1000), "acks": "all"}
    producer = client(Producer, settings)
    error, message = _produced(producer, servers, topic, line, None)
    if error is not None and error.code() == KafkaError.INVALID_RECORD:
        error, message = _produced(producer, servers, topic, line, KEY)
    if error is None:
        return f"{topic}-{message.partition()}"
    if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        right = "give it the ACL Write for the topic, or name another --source"
        raise SourceDenied(f"{servers}: this user may not write to '{topic}' ({reason(error)}); {right}")
    raise explained(error, servers, topic)


def _produced(producer: Producer, servers: str, topic: str, line: str, key: str | None) -> tuple[KafkaError | None, Message]:
    """Produce one record; return why it was refused, None if it was not, and the record.

    Raises SourceError when it cannot be sent, SourceAway when nobody answers.
    """
    outcomes: list[tuple[KafkaError | None, Message]] = []
    try:
        producer.produce(topic, line.encode(), key, on_delivery=lambda error, message: outcomes.append((error, message)))
    except KafkaException as failure:
        raise explained(failure.args[0], servers, topic) from None
    producer.flush(WITHIN_S + 1)
    if not outcomes:
        raise SourceAway(servers, f"{servers} has not taken a record for {topic} within {WITHIN_S:.0f} s; is a broker there?")
    return outcomes[0]
