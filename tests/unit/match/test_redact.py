"""What is a secret never leaves the matcher; what a diagnosis needs always does."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.match.digits import DIGITS
from engine.match.redact import MASK, cut, redact, redactor_of
from engine.model.redaction import Redaction
from tests.unit.match.secret_grammar import HARMLESS, NAMED, NAMES, PLACED, TOPICS, harmless, telling

SECRET = "ZQ7xSecret"


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
        ("token=6700112233445566", "6700112233445566"),
        ("Authorization: Basic dXNlcjpwdw==", "dXNlcjpwdw=="),
        ("aws_secret_access_key: wJalrXUtnFEMI", "wJalrXUtnFEMI"),
        ("key AKIAIOSFODNN7EXAMPLE used", "AKIAIOSFODNN7EXAMPLE"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----", "MIIB"),
        ("customer jane.roe@example.com not found", "jane.roe"),
        ("credentials: SEASALT_AND_PEPPER", "SEASALT"),
        ("password=SECRETUPPER", "SECRETUPPER"),
        ("database.password = correct horse battery staple", "staple"),
        ("password: correct horse battery staple", "staple"),
        ("password:\n  correct horse battery staple", "staple"),
        ("\x1b[31mpassword\x1b[0m=hunter2", "hunter2"),
        ("Server=h;Password=a b c;Encrypt=true", "b c"),
        ("The request signature: aws wJalrXUtnFEMI/K7MDENG/bPxRfiCYz07xSecKEY", "bPxRfiCY"),
        ("token is 3f2a9c1b7d8e4f60a1b2c3d4e5f60718", "3f2a9c1b"),
        ("client-final c=biws,r=fyko+d2lbbFgONRv9qkxdawL,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", "v0X8v3Bz"),
        ("pay with 4111 1111 1111 1111 now", "4111 1111"),
        ("pay with 4111-1111-1111-1111 now", "4111-1111"),
        ("card=378282246310005", "378282246310005"),
        ("card number 6011000990139424.", "6011000990139424"),
        ("주민번호 900101-1234568", "900101-1234568"),
        ("resident number 9001011234568", "9001011234568"),
        ("customer 021005-3123456 is new", "021005-3123456"),
        ("ssn: 078-05-1120", "078-05-1120"),
        ("tel 010-1234-5678", "010-1234-5678"),
        ('"phoneNumber":"+49 30 901820"', "901820"),
    ],
)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize("placed", PLACED)
def test_a_place_that_gives_a_secret_away(placed: str) -> None:
    assert SECRET not in redact(placed.format(secret=SECRET))


@pytest.mark.parametrize("named", NAMED)
def test_a_value_behind_the_name_of_a_secret(named: str) -> None:
    texts = [named.format(name=name, secret=SECRET) for name in NAMES]
    assert [text for text in texts if SECRET in redact(text)] == []


# what no value without quotes and no address can hold: it ends there
QUOTED = [form for form in NAMED if '"{secret}"' in form and "\\" not in form and "<" not in form]


@pytest.mark.parametrize("form", QUOTED)
@given(st.text(st.characters(exclude_characters='"\\\n', exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30))
def test_a_quoted_value_may_hold_anything(form: str, value: str) -> None:
    redacted = redact(form.format(name="password", secret=f"ZQ7x{value}x7QZ"))
    assert "ZQ7x" not in redacted
    assert "x7QZ" not in redacted


@pytest.mark.parametrize("mark", "!@#$%^&*()_+-={}[]|:;,.?/~")
def test_a_value_without_quotes_may_hold_delimiters(mark: str) -> None:
    for form in ("password={}", "a=1;password={};b=2", "{{a=1, password={}}}", "https://u:p{}@h:1/x?y=1", "amqp://u:{}@h"):
        redacted = redact(form.format(f"ZQ7x{mark}{mark}x7QZ"))
        assert "ZQ7x" not in redacted, form
        assert "x7QZ" not in redacted, form


@settings(max_examples=5 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(telling())
def test_no_planted_secret_is_left(planted: tuple[str, str]) -> None:
    text, secret = planted
    redacted = redact(text)
    assert secret not in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "The message is 1125872 bytes when serialized which is larger than 1048576",
        "ssl.key.password = null",
        "sasl.client.callback.handler.class = null password = [hidden]",
        "Authentication failed: Invalid credentials: SASL_AUTHENTICATION_FAILED",
        "EnvironmentVariableCredentialsProvider: Unable to load credentials from the environment",
        "kinit -t dev.keytab -k dev_sp@EXAMPLE.PRIV: exited with code 1",
        "no ticket for kafka/kafka63@hadoop.example.com",
        "bootstrap http://connect:8083/connectors/cdc-source/status",
        "Cannot get userid/password [Caused by UnsupportedCallbackException: Could not login]",
        "Failed to fetch public keys needed to validate JWT signatures: http://sso.example/certs",
        "using key SharePartitionKey{groupId=jobs, topicIdPartition=uA2opA9RQjGowdBBF-iUjQ:null-0}",
        "sasl.jaas.config = com.sun.security.auth.module.Krb5LoginModule required",
        "offset 4111111111111111, timestamp=4111111111111111",
        "session 0x1000a2b3c4d0001 of 00000000004111111111.log",
        "130230-1234567 is no day",
        "010-1234-5678 is what has no name",
    ],
)
def test_what_a_diagnosis_is_made_of_stays(text: str) -> None:
    assert redact(text) is text


@pytest.mark.parametrize("form", HARMLESS)
def test_a_topic_may_be_called_as_it_likes(form: str) -> None:
    for topic in TOPICS:
        text = form.format(topic=topic, number=6011000990139424, small=17)
        assert redact(text) == text


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(harmless(), min_size=1, max_size=4).map("\n".join))
def test_harmless_texts_stay_as_they_are(text: str) -> None:
    assert redact(text) is text


def test_a_name_before_a_secret_stays_readable() -> None:
    assert redact("db.password = x, topic = orders") == "db.password = [redacted], topic = orders"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    assert redact(f'sasl.jaas.config = {module} username="a" password="b;c";') == f"sasl.jaas.config = {module} [redacted];"
    assert redact("https://u:p@ss@h:8081/x failed") == "https://[redacted]@h:8081/x failed"
    assert redact("password=hunter2 for topic orders") == "password=[redacted] for topic orders"


def test_what_is_hidden_is_called_by_its_name() -> None:
    text = "jane@example.com paid with 4111111111111111, 주민번호 900101-1234568, phone: 010-1234-5678"
    assert redact(text) == "[e-mail] paid with [card], 주민번호 [national-id], phone: [phone]"


def test_what_a_configuration_adds_and_leaves() -> None:
    text = "jane@example.com called 010-1234-5678 and +82 2 1234 5678 about EMP-4711 of unit u=17."
    own = redactor_of(Redaction(email=False, phone=True, patterns=(r"EMP-[0-9]+", "u=([0-9]+)")))
    assert own(text) == "jane@example.com called [phone] and [phone] about [redacted] of unit u=[redacted]."
    assert own.alike("EMP-0000")
    assert own.alike("u=00")
    assert not own.alike("nothing at all")
    offsets = "offset 1234567890 of orders-0 at 2022-10-05 17:00:00,123 [127.0.0.1:9092] after 1,2,3"
    assert own(offsets) == offsets


def test_a_captured_secret_is_masked_though_its_name_is_gone() -> None:
    text = "login failed: password=hunter2 pin=4711 for topic orders"
    captures = {"given": "hunter2", "pin": 4711, "topic": "orders", "size": 12}
    clean = redactor_of(Redaction()).captures(captures, text, redact(text))
    assert clean == {"given": MASK, "pin": MASK, "topic": "orders", "size": 12}


def test_labels_are_redacted() -> None:
    redactor = redactor_of(Redaction())
    labels = {"host": "kafka-1", "url": "https://u:hunter2@h/"}
    assert redactor.labels(labels) == {"host": "kafka-1", "url": "https://[redacted]@h/"}
    plain = {"host": "kafka-1"}
    assert redactor.labels(plain) is plain


@given(st.text(max_size=300))
@example('password="[redacted]"password=')
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


PIECES = (
    "password",
    "=",
    ":",
    " ",
    "\n",
    '"',
    "\\",
    "'",
    "[redacted]",
    "token",
    "://",
    "@",
    "u:p",
    ";",
    ",",
    "x1y2z3",
    "[",
    "]",
    "{",
    "}",
    "<password>",
    "</password>",
    "-u ",
    "Bearer ",
    "key ",
    "authorization",
    "LoginModule required ",
    "4111111111111111",
    "null",
    "[card]",
    "Ab3Cd4Ef5Gh6Ij7Kl8Mn9",
    "-----BEGIN PRIVATE KEY-----",
    "mysql -p",
    "a@b.cd",
    "tel 010-1234-5678",
    "is",
    "(",
    ")",
    "&",
    "%3D",
)


def redact_as_class(text: str) -> str:
    """Redact a text as one of those that are equal except for digits."""
    clean = redactor_of(Redaction()).alike(text.translate(str.maketrans(DIGITS, "0" * len(DIGITS))))
    return text if clean is None else clean(text)


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_whatever_is_put_together_is_redacted_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert redact_as_class(text) == once


@pytest.mark.parametrize(
    "piece",
    [
        "password=null,",
        'password="',
        "<password>x",
        "x://a:b@",
        "-----BEGIN PRIVATE KEY-----",
        "--password ",
        "password:\n",
        "password=((((",
        " mysql -p",
        'LoginModule required "',
        "authorization: ",
        "key Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3 ",
        "1234 ",
        "a-",
        "eyJ.",
        "cookie: a=b ",
        "value x for password ",
        '"value":"x",',
        "password for a ",
        "password:\n- a\n",
        "INSERT INTO t (password) VALUES (",
        "password=a%26",
        "secret=a(",
        "authorization=a(",
    ],
)
@pytest.mark.parametrize("size", [2_000, pytest.param(25_000, marks=pytest.mark.slow)])
def test_time_is_linear(piece: str, size: int) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        redact(text)
        return time.process_time() - began

    seconds(1000)
    short = max(min(seconds(size) for _ in range(3)), size / 2_500_000)
    assert seconds(8 * size) < 8 * 4 * short  # eight times the text; four is for the noise of a machine at work


ATTACKS = (Path(__file__).parent / "secrets.log").read_text(encoding="utf-8")


def test_logs_full_of_secrets() -> None:
    leaks = re.findall(r"ZQ[0-9]+x?\w*|LEAK[0-9]+|WlExM\w+", redact(ATTACKS))
    assert leaks == ["ZQ55"]  # which stands behind a telephone number and is none


@given(st.text(max_size=3000))
def test_evidence_fits_and_ends_at_a_character_border(text: str) -> None:
    kept = cut(text)
    assert text.encode("utf-8", "replace").startswith(kept.encode("utf-8", "replace"))
    assert len(kept.encode("utf-8", "replace")) <= 4096


def test_evidence_is_cut_between_characters() -> None:
    assert cut("é" * 4096) == "é" * 2048
    assert cut("x" + "é" * 4096) == "x" + "é" * 2047
