"""What librdkafka refuses with becomes a sentence, and tells a cluster that is away from one that will never answer."""

import pytest
from confluent_kafka import KafkaError

from connectors.kafka.cluster import explained
from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, SourceAway),
        (KafkaError._NOENT, SourceAway),
        (KafkaError.NOT_LEADER_FOR_PARTITION, SourceAway),
        (KafkaError._UNKNOWN_PARTITION, SourceMissing),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, SourceDenied),
        (KafkaError.UNSUPPORTED_VERSION, SourceError),
    ],
)
def test_only_what_may_pass_by_itself_is_waited_for(code: int, kind: type[SourceError]) -> None:
    refusal = explained(KafkaError(code), "k1:9092", "logs")
    assert type(refusal) is kind
    assert "k1:9092" in str(refusal)


def test_the_only_broker_that_has_just_gone_leaves_no_leader() -> None:
    gone = explained(KafkaError(KafkaError._NOENT, "Failed to query partition leaders: No leaders found"), "k1:9092", "logs")
    assert str(gone) == "logs on k1:9092 cannot be read now: Failed to query partition leaders: No leaders found"
