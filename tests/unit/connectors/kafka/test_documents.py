"""Kafka records become lines of the streams they are from; labels and options say what is wrong with them."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka import check_label, check_option
from connectors.kafka.documents import RecordAuthor, RecordReader, stream_name
from connectors.kafka.options import resolved
from connectors.kafka.reading import runs
from engine.errors import SourceError
from engine.labelling import filled

LINE = "[2022-10-05 17:05:00,000] INFO fine (kafka)"
FILEBEAT = {
    "@timestamp": "2022-10-05T17:05:00.000Z",
    "host": {"name": "kafka-1"},
    "log": {"offset": 17, "file": {"path": "/var/log/kafka/server.log"}},
    "message": LINE,
}


def read(value: bytes, *fields: str) -> tuple[bytes, RecordAuthor]:
    """Return the lines of a record alone, and its author."""
    (lines,), (author,) = RecordReader(fields).read([value])
    return lines, author


def name_of(value: bytes, key: str = "k") -> str:
    """Return the source_id of a record's lines."""
    return stream_name("logs", 3, key, read(value)[1])


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (b"a line", "logs/k"),
        (b"two\nlines\n", "logs/k"),
        (b"", "logs/k"),
        (b"\xff\xfe", "logs/k"),
        (b"{not json", "logs/k"),
        (b'{"message": "no host, no file"}', "logs/k"),
        (b'{"hostname": "h", "msg": "of pino"}', "logs/h"),
        (b'{"host": "h", "file": "/a.log", "message": "\\tat a.b"}', "logs/h:/a.log"),
        (b'{"host": "h", "source": "/a#1.log", "message": "x\\ny"}', "logs/h:/a%231.log"),
        (b'{"file": "/a.log", "message": ""}', "logs//a.log"),
        (b'{"kubernetes": {"pod_name": "p-0"}, "log": "x"}', "logs/p-0"),
        (b'{"kubernetes": {"pod_name": "p-0", "container_name": "kafka"}, "log": "x\\n"}', "logs/p-0:kafka"),
        (b'{"container_id": "6d1e", "container_name": "/kafka-1", "source": "stdout", "log": "x"}', "logs//kafka-1"),
        (b'{"host": "h", "container_name": "kafka", "message": "x", "source_type": "docker_logs"}', "logs/h:kafka"),
        (b'{"host": "h", "_SYSTEMD_UNIT": "kafka.service", "message": "x"}', "logs/h:kafka.service"),
        (json.dumps(FILEBEAT).encode(), "logs/kafka-1:/var/log/kafka/server.log"),
    ],
)
def test_a_record_stays_as_it_is_and_belongs_to_the_file_that_it_names(value: bytes, name: str) -> None:
    assert (name_of(value), read(value)[0]) == (name, value)


def test_a_record_without_key_or_document_belongs_to_its_partition() -> None:
    assert name_of(b"x", key="") == "logs-3"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_document_over_several_lines_is_one_line(end: bytes) -> None:
    value = b'{"host": "h", "file": "/a.json",%b "level": "ERROR", "message": "m", "stack_trace": "t"}' % end
    held, _ = read(value)
    assert json.loads(held) == json.loads(value)
    assert b"\n" not in held
    assert name_of(value) == "logs/h:/a.json"


@given(
    st.binary() | st.recursive(st.none() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(json.dumps).map(str.encode)
)
def test_no_record_fails(value: bytes) -> None:
    assert "#" not in name_of(value, "a#b")


CONTAINERS = ["kubernetes.container_name", "kubernetes.container.name", "container_name", "container.name"]
_PODS = ["kubernetes.pod.name", "kubernetes.pod_name"]
NAMED = st.fixed_dictionaries({}, optional={"name": st.sampled_from(["h", "p"])})
TEXTS = st.sampled_from(["", "h", "x\n", "é", "#", LINE])
NESTED = st.fixed_dictionaries(
    {}, optional={"name": TEXTS, "file": st.just({"path": "/a"}), "level": TEXTS, "pod": NAMED, "container": NAMED}
)
KEYS = st.lists(
    st.sampled_from(["message", "log", "host", "file", "level", "host.name", "kubernetes", "app", "container_name"]),
    unique=True,
)
ANYTHING = (
    TEXTS | st.just("h") | st.none() | st.integers(0, 1) | st.floats() | st.booleans() | st.lists(TEXTS, max_size=1) | NESTED
)
# documents with the same keys in any order, often the same values
SHIPPED = KEYS.flatmap(
    lambda keys: st.lists(
        st.permutations(keys).flatmap(
            lambda shuffled: st.tuples(*(ANYTHING for _ in keys)).map(
                lambda values: json.dumps(dict(zip(shuffled, values, strict=True))).encode()
            )
        ),
        min_size=1,
        max_size=4,
    )
)
RAW = [
    b'{"message": "m", "host": "h", "x": "\xff"}',
    b'{"message": "m", "host": "h", "x": 1e999}',
    b"raw",
    b"a\nb",
    b"\xff\n",
    b"",
    b"{no",
    b"[1]",
    b'{"message": "m", "host": "h"}',
    b'{"host": "h", "message": "o\\n"}',
    b'{"host": "h", "host": 1, "message": "m", "message": "n"}',
    b'{"host": {"name": "\\ud800"}, "message": "m"}',
]
FIELDS = st.lists(st.sampled_from(["app", "app.name", "kubernetes.pod.name", "host", "message", "log.level"]), unique=True)


def by_reading_all(value: bytes, fields: Sequence[str]) -> tuple[bytes, str, str, tuple[str | None, ...]]:
    """The lines of a record, its host, its file, and its values of these fields, by the words of docs/kafka.md."""
    document = by_python(value.decode("utf-8", "replace")) if value.startswith(b"{") else None
    asked = tuple(_said(document, [field]) for field in fields)
    host = _said(document, ["host.name", "host.hostname", "host", "hostname", "agent.hostname", *_PODS])
    file = _said(document, ["file", "log.file.path", "file.path", "filename", "path", *CONTAINERS, "source"])
    return value, host or "", file or "", asked


def _said(document: object, names: Sequence[str]) -> str | None:
    for name in names:
        for at in (name, *name.split(".", 1)[:-1]):
            if isinstance(document, dict) and at in document:
                found = document[at] if at == name else _said(document[at], [name.split(".", 1)[1]])
                if isinstance(found, str):
                    return found.encode("utf-8", "replace").decode()
                break
    return None


@given(SHIPPED | st.lists(st.sampled_from(RAW), min_size=1), FIELDS)
def test_records_read_together_are_read_as_each_alone(values: list[bytes], fields: list[str]) -> None:
    reader = RecordReader(fields)
    lines, authors = reader.read(values)
    records = [(line, author.host, author.file, author.fields) for line, author in zip(lines, authors, strict=True)]
    assert records == [by_reading_all(value, fields) for value in values]
    again = reader.read(values[:1])
    assert (list(again[0]), list(again[1])) == ([lines[0]], [authors[0]])


@pytest.mark.parametrize("shuffled", [sorted(FILEBEAT), sorted(FILEBEAT, reverse=True)])
def test_the_order_of_the_fields_of_a_document_does_not_matter(shuffled: list[str]) -> None:
    values = [json.dumps(FILEBEAT).encode(), json.dumps({key: FILEBEAT[key] for key in shuffled}).encode()]
    _, authors = RecordReader().read(values)
    assert authors[0] is authors[1]


def test_large_documents_are_read_as_small_ones_are_and_not_remembered() -> None:
    reader = RecordReader()
    small = {"host": "h", "file": "/a", "message": "m", "level": "ERROR"}
    large = [json.dumps({**small, "app": f"{number}" * 5000}).encode() for number in range(3)]
    _, authors = reader.read([json.dumps(small).encode(), *large])
    assert len(set(authors)) == 1
    assert reader._remembered.cache_info().currsize == 1


def test_what_is_too_long_for_a_name_is_none() -> None:
    value = json.dumps({"host": "h", "source": "x" * 5000, "message": "m"}).encode()
    assert name_of(value) == "logs/h"


def test_half_a_surrogate_pair_in_a_name_leaves_it_text() -> None:
    value = b'{"message": "m", "host": "h\\ud800", "file": "/a\\udfff", "app": "\\ud800"}'
    assert name_of(value) == "logs/h?:/a?"
    assert read(value, "app")[1].fields == ("?",)


def test_labels_are_fixed_text_or_parts_of_what_the_record_says() -> None:
    said = {"key": "broker-7.eu", "host": "kafka-1", "kubernetes.namespace": "prod"}

    def ask(name: str, argument: str) -> str | None:
        return said.get(argument if name == "field" else name)

    templates = {
        "cluster": "prod",
        "broker": r"{key:broker-(\d{1,3})}",
        "where": "{host}/{field:kubernetes.namespace}",
        "absent": "{file}",
        "other": "{key:worker}",
    }
    assert filled(templates, ask) == {"cluster": "prod", "broker": "7", "where": "kafka-1/prod"}


@pytest.mark.parametrize(
    ("template", "wrong"),
    [
        ("{path:x}", "`{path}` is no part of a record"),
        ("{key:(}", "'(' is not a regular expression"),
        ("{field}", "needs the name of a field"),
        ("{key:a", "a brace that is not closed"),
        (r"{key:broker-(\d{1,3})}-{topic}", None),
        ("plain {} text", None),
    ],
)
def test_what_is_wrong_with_a_label_is_said(template: str, wrong: str | None) -> None:
    said = check_label(template)
    assert said is None if wrong is None else wrong in (said or "")


def test_options_that_are_ours_or_hold_a_secret_are_refused() -> None:
    assert "a lost range is reported" in (check_option("auto.offset.reset", "earliest") or "")
    assert "write where it is stored" in (check_option("sasl.password", "hunter2") or "")
    assert check_option("sasl.password", "env:KAFKA_PASSWORD") is None
    assert check_option("security.protocol", "SASL_SSL") is None


def test_secrets_are_looked_up_and_a_missing_one_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from a file\n")
    monkeypatch.setenv("KAFKA_PASSWORD", "from the environment")
    options = {"sasl.password": "env:KAFKA_PASSWORD", "ssl.key.password": f"file:{tmp_path}/key", "client.rack": "a"}
    assert resolved(options) == {
        "sasl.password": "from the environment",
        "ssl.key.password": "from a file",
        "client.rack": "a",
    }
    with pytest.raises(SourceError, match="environment variable NOT_SET, which is not set"):
        resolved({"sasl.password": "env:NOT_SET"})
    with pytest.raises(SourceError, match="a file that cannot be read"):
        resolved({"sasl.password": f"file:{tmp_path}/none"})


def by_python(value: str) -> object:
    """What Python's own reader says a record's document is; None for none."""
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


@given(
    st.recursive(
        st.none() | st.integers(-(2**63), 2**63) | st.floats() | st.text(st.characters(exclude_categories=())), st.lists
    ).map(lambda value: json.dumps({"host": "h", "message": "m", "more": value}))
)
def test_what_else_is_in_a_document_does_not_matter(text: str) -> None:
    assert read(text.encode())[1].host == "h"


def test_messages_are_told_apart_by_partition_and_errors() -> None:
    messages = [
        Message(partition=0, value=b"a"),
        Message(partition=0, error=KafkaError(KafkaError._PARTITION_EOF)),
        Message(partition=1, error=KafkaError(KafkaError._PARTITION_EOF)),
        Message(partition=1, value=b"b"),
        Message(partition=1, value=b"c"),
    ]
    found = [(partition, failed, [messages.index(each) for each in some]) for partition, failed, some in runs(messages)]
    assert found == [(0, False, [0]), (0, True, [1]), (1, True, [2]), (1, False, [3, 4])]
    assert [(partition, failed, len(some)) for partition, failed, some in runs(messages[3:])] == [(1, False, 2)]
    assert [(partition, failed, len(some)) for partition, failed, some in runs(messages[:2])] == [(0, False, 1), (0, True, 1)]
    assert list(runs([])) == []
