"""What librdkafka refuses with becomes a sentence, and tells a cluster that is away from one that will never answer."""

import pytest
from confluent_kafka import OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException

from connectors.kafka.cluster import valid_offset
from connectors.kafka.refusals import explained, reason
from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing

BAD_PASSWORD = (
    "sasl_plaintext://k1:9092/bootstrap: SASL authentication error: Authentication failed: Invalid username or password"
    " (after {}ms in state AUTH_REQ)"
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, SourceAway),
        (KafkaError._NOENT, SourceAway),
        (KafkaError.NOT_LEADER_FOR_PARTITION, SourceAway),
        (KafkaError.BROKER_NOT_AVAILABLE, SourceAway),
        (KafkaError.NETWORK_EXCEPTION, SourceAway),
        (KafkaError.REQUEST_TIMED_OUT, SourceAway),
        (KafkaError.KAFKA_STORAGE_ERROR, SourceAway),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, SourceAway),
        (KafkaError.UNKNOWN_TOPIC_ID, SourceAway),
        (KafkaError._UNKNOWN_PARTITION, SourceMissing),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, SourceDenied),
        (KafkaError._AUTHENTICATION, SourceDenied),
        (KafkaError._SSL, SourceDenied),
        (KafkaError.UNSUPPORTED_VERSION, SourceError),
        (KafkaError._DESTROY, SourceError),
        (KafkaError._MAX_POLL_EXCEEDED, SourceError),
    ],
)
def test_only_what_may_pass_by_itself_is_waited_for(code: int, kind: type[SourceError]) -> None:
    refusal = explained(KafkaError(code), "k1:9092", "logs")
    assert type(refusal) is kind
    assert "k1:9092" in str(refusal)


def test_the_only_broker_that_has_just_gone_leaves_no_leader() -> None:
    gone = explained(KafkaError(KafkaError._NOENT, "Failed to query partition leaders: No leaders found"), "k1:9092", "logs")
    assert str(gone) == "logs on k1:9092 cannot be read now: Failed to query partition leaders: No leaders found"


def test_an_offset_that_no_leader_told_is_none() -> None:
    assert [valid_offset(offset) for offset in (0, 7, OFFSET_END)] == [0, 7, OFFSET_END]
    with pytest.raises(KafkaException) as raised:
        valid_offset(OFFSET_INVALID)
    assert type(explained(raised.value.args[0], "k1:9092", "logs")) is SourceAway


def test_how_long_a_connection_took_and_how_often_is_not_part_of_the_reason() -> None:
    refused = "127.0.0.1:9/3: Connect to ipv4#127.0.0.1:9 failed: Connection refused"
    for took in ("(after 0ms in state CONNECT)", "(after 3ms in state CONNECT, 2 identical error(s) suppressed)"):
        assert reason(KafkaError(KafkaError._TRANSPORT, f"{refused} {took}")) == refused


@pytest.mark.parametrize("took_ms", [306, 1])
def test_a_question_that_times_out_at_a_door_that_stays_shut_is_a_refusal_in_the_same_words_each_time(took_ms: int) -> None:
    heard = KafkaError(KafkaError._AUTHENTICATION, BAD_PASSWORD.format(took_ms))
    refusal = explained(KafkaError(KafkaError._TIMED_OUT), "k1:9092", "logs", heard)
    assert type(refusal) is SourceDenied
    assert str(refusal) == (
        "k1:9092 does not let us in: SASL authentication error: Authentication failed: Invalid username or password;"
        " check sasl.mechanism, sasl.username and sasl.password"
    )


def test_what_was_heard_of_connections_does_not_explain_what_a_broker_answers() -> None:
    heard = KafkaError(KafkaError._AUTHENTICATION, BAD_PASSWORD.format(3))
    assert type(explained(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), "k1:9092", "logs", heard)) is SourceMissing
    assert type(explained(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION), "k1:9092", "logs", heard)) is SourceAway


def test_a_plain_client_at_a_listener_with_tls_is_told_where_to_look() -> None:
    dropped = explained(KafkaError(KafkaError._TIMED_OUT), "k1:9093", "logs")
    assert type(dropped) is SourceAway
    assert "check the address and security.protocol" in str(dropped)
