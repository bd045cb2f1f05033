"""Options in librdkafka's spelling become those of kafka-python; what it cannot take is an error, never ignored."""

from __future__ import annotations

import pytest
from kafka.admin import KafkaAdminClient

from connectors.kafka_cluster.options import _NAMES, check_option, client_options
from engine.errors import SourceError, UsageError

OPTIONS = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "tocsin",
    "sasl.password": "env:KAFKA_PASSWORD",
    "ssl.ca.location": "/ca.pem",
    "ssl.endpoint.identification.algorithm": "none",
}


def test_every_option_is_one_of_the_client() -> None:
    assert set(filter(None, _NAMES.values())) <= KafkaAdminClient.DEFAULT_CONFIG.keys()


def test_options_are_spelled_as_the_client_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "s3cret")
    assert client_options(OPTIONS) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "tocsin",
        "sasl_plain_password": "s3cret",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
    }
    assert client_options({"ssl.endpoint.identification.algorithm": "https"}) == {"ssl_check_hostname": True}


def test_a_secret_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    with pytest.raises(UsageError, match="KAFKA_PASSWORD is not set"):
        client_options(OPTIONS)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("sasl.password", "s3cret", "is a secret: write where it is stored"),
        ("linger.ms", "5", "`linger.ms` is no option of a client that asks; it takes client.id, sasl."),
        ("enable.ssl.certificate.verification", "false", "name the authority of the brokers' certificates"),
    ],
)
def test_what_cannot_be_taken_is_refused(name: str, value: str, sentence: str) -> None:
    error = check_option(name, value)
    assert error is not None
    assert sentence in error
    assert "s3cret" not in error
    with pytest.raises(SourceError):
        client_options({name: value})
