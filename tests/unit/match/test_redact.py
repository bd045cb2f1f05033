"""What is a secret never leaves the matcher; what a diagnosis needs always does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.match.redact import cut, redact, redact_captures


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("ssl.keystore.password = hunter2", "hunter2"),
        ("passwd=12345", "12345"),
        ('{"database.password":"pass word","a":1}', "pass word"),
        ('ScramLoginModule required username="kim" password="k1m";', "kim"),
        ("sasl.jaas.config = org.apache.kafka.X required token=abc;", "token=abc"),
        ("jdbc:mysql://root:toor@db:3306/shop", "toor"),
        ("token=abcdef0123456", "abcdef0123456"),
        ("Authorization: Basic dXNlcjpwdw==", "dXNlcjpwdw=="),
        ("aws_secret_access_key: wJalrXUtnFEMI", "wJalrXUtnFEMI"),
        ("key AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "MIIB"),
        ("customer jane.roe@example.com not found", "jane.roe"),
        ("credentials: SEASALT_AND_PEPPER", "SEASALT"),
    ],
)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "The message is 1125872 bytes when serialized which is larger than 1048576",
        "controller.quorum.voters = 1@kafka-1.example.com:9093,2@kafka-2.example.com:9093",
        "delegation.token.max.lifetime.ms = 604800000",
        "ssl.key.password = null",
        "sasl.client.callback.handler.class = null password = [hidden]",
        "RequestHeader(apiKey=OFFSET_COMMIT, apiVersion=8)",
        "Authentication failed due to invalid credentials with SASL mechanism SCRAM-SHA-256",
        "Authentication failed: Invalid credentials: SASL_AUTHENTICATION_FAILED",
        "EnvironmentVariableCredentialsProvider: Unable to load credentials from the environment",
        "kinit -t dev.keytab -k dev_sp@EXAMPLE.PRIV: exited with code 1",
        "no ticket for kafka/kafka63@hadoop.example.com",
        "bootstrap http://connect:8083/connectors/cdc-source/status",
    ],
)
def test_what_a_diagnosis_is_made_of_stays(text: str) -> None:
    assert redact(text) == text


def test_a_name_before_a_secret_stays_readable() -> None:
    assert redact("db.password = x, topic = orders") == "db.password = [redacted], topic = orders"


def test_a_captured_secret_is_masked_though_its_name_is_gone() -> None:
    text = "login failed: password=hunter2 for topic orders"
    captures = {"given": "hunter2", "topic": "orders", "size": 12}
    assert redact_captures(captures, text, redact(text)) == {"given": "[redacted]", "topic": "orders", "size": 12}


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=3000))
def test_evidence_fits_and_ends_at_a_character_border(text: str) -> None:
    kept = cut(text)
    assert text.encode("utf-8", "replace").startswith(kept.encode("utf-8", "replace"))
    assert len(kept.encode("utf-8", "replace")) <= 4096


def test_evidence_is_cut_between_characters() -> None:
    assert cut("é" * 4096) == "é" * 2048
    assert cut("x" + "é" * 4096) == "x" + "é" * 2047
