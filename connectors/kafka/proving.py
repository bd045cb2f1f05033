"""Put a line into a topic, as a record of its own."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from connectors.kafka.cluster import client, connection
from connectors.kafka.refusals import explained, reason
from engine.errors import SourceAway, SourceDenied

WITHIN_S = 15.0
_CONSUMER_OPTIONS = ("group.", "fetch.", "isolation.", "auto.offset.", "enable.auto.", "max.poll.", "session.", "queued.")


def put_line(servers: str, options: Mapping[str, str], topic: str, line: str) -> str:
    """Produce `line` to `topic` with the options of its source; return the stream, as `topic-0`.

    Raises SourceError: SourceDenied when this user may not write to the topic, which reading it does not need.
    """
    usable = {name: value for name, value in options.items() if not name.startswith(_CONSUMER_OPTIONS)}
    settings = {**connection(servers, usable), "message.timeout.ms": int(WITHIN_S * 1000), "acks": "all"}
    producer = client(Producer, settings)
    outcomes: list[tuple[KafkaError | None, Message]] = []
    try:
        producer.produce(topic, line.encode(), on_delivery=lambda error, message: outcomes.append((error, message)))
    except KafkaException as failure:
        raise explained(failure.args[0], servers, topic) from None
    producer.flush(WITHIN_S + 1)
    if not outcomes:
        raise SourceAway(servers, f"{servers} has not taken a record for {topic} within {WITHIN_S:.0f} s; is a broker there?")
    error, message = outcomes[0]
    if error is None:
        return f"{topic}-{message.partition()}"
    if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        right = "give it the ACL Write for the topic, or name another --source"
        raise SourceDenied(f"{servers}: this user may not write to '{topic}' ({reason(error)}); {right}")
    raise explained(error, servers, topic)
