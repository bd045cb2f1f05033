"""Kafka records become lines of the streams they are from; labels and options say what is wrong with them."""

import json
from io import BytesIO
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka import check_label, check_option
from connectors.kafka.joining import JOINED_BYTES, Joining, Origin, Taken
from connectors.kafka.labels import filled
from connectors.kafka.options import resolved
from connectors.kafka.reading import runs
from connectors.kafka.records import Run, content, fields_of, run_of, stream_name
from connectors.kafka.shapes import Shapes
from engine.errors import SourceError
from engine.model.records import RawLine

FILEBEAT = {
    "@timestamp": "2022-10-05T17:05:00.000Z",
    "host": {"name": "kafka-1"},
    "log": {"offset": 17, "file": {"path": "/var/log/kafka/server.log"}},
    "message": "[2022-10-05 17:05:00,000] INFO fine (kafka)",
}


@pytest.mark.parametrize(
    ("value", "name", "data"),
    [
        (b"a line", "logs/k", b"a line\n"),
        (b"two\nlines\n", "logs/k", b"two\nlines\n"),
        (b"", "logs/k", b"\n"),
        (b"\xff\xfe", "logs/k", b"\xff\xfe\n"),
        (b"{not json", "logs/k", b"{not json\n"),
        (b'{"message": "no host, no file"}', "logs/k", b'{"message": "no host, no file"}\n'),
        (b'{"host": "h", "file": "/a.log", "message": "\\tat a.b"}', "logs/h:/a.log", b"\tat a.b\n"),
        (b'{"host": "h", "source": "/a#1.log", "message": "x\\ny"}', "logs/h:/a%231.log", b"x\ny\n"),
        (b'{"file": "/a.log", "message": ""}', "logs//a.log", b"\n"),
        (b'{"kubernetes": {"pod_name": "p-0"}, "log": "x"}', "logs/p-0", b"x\n"),
        (json.dumps(FILEBEAT).encode(), "logs/kafka-1:/var/log/kafka/server.log", FILEBEAT["message"].encode() + b"\n"),  # type: ignore[attr-defined]
    ],
)
def test_a_record_is_lines_or_a_document_around_one(value: bytes, name: str, data: bytes) -> None:
    said = content(value)
    assert (stream_name("logs", 3, "k", said), said.data) == (name, data)


def test_a_record_without_key_or_document_belongs_to_its_partition() -> None:
    assert stream_name("logs", 3, "", content(b"x")) == "logs-3"


def test_a_document_that_the_program_wrote_itself_stays_whole() -> None:
    value = b'{"host": "h", "file": "/a.json",\n "level": "ERROR", "message": "m", "stack_trace": "t"}'
    said = content(value)
    assert json.loads(said.data) == json.loads(value)
    assert said.data.count(b"\n") == 1
    assert stream_name("logs", 0, "", said) == "logs/h:/a.json"


@given(
    st.binary() | st.recursive(st.none() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(json.dumps).map(str.encode)
)
def test_no_record_fails_and_every_line_has_its_end(value: bytes) -> None:
    said = content(value)
    assert said.data.endswith(b"\n")
    assert "#" not in stream_name("logs", 0, "a#b", said)


TEXTS = st.sampled_from(["", "h", "x\n", "é", "#", "[2022-10-05 17:05:00,000] INFO fine (kafka)"])
NESTED = st.fixed_dictionaries({}, optional={"name": TEXTS, "file": st.just({"path": "/a"}), "level": TEXTS})
KEYS = st.lists(st.sampled_from(["message", "log", "host", "file", "level", "host.name", "kubernetes", "x"]), unique=True)
# documents with the same keys, often the same values
SHIPPED = KEYS.flatmap(
    lambda keys: st.lists(
        st.tuples(*(TEXTS | st.just("h") | st.none() | NESTED for _ in keys)).map(
            lambda values: json.dumps(dict(zip(keys, values, strict=True))).encode()
        ),
        min_size=1,
        max_size=3,
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
]


@given(SHIPPED | st.lists(st.sampled_from(RAW), min_size=1))
def test_records_read_together_say_what_each_says(values: list[bytes]) -> None:
    run, each = run_of(values, Shapes()), [content(value) for value in values]
    if run is not None:
        assert _parts(run) == [said.data for said in each]
        assert {(run.host, run.file)} == {(said.host, said.file) for said in each}


def test_half_a_surrogate_pair_in_a_name_leaves_it_text() -> None:
    said = content(b'{"message": "m", "host": "h\\ud800", "file": "/a\\udfff"}')
    assert stream_name("logs", 0, "k", said) == "logs/h?:/a?"
    assert fields_of(b'{"host": "h\\ud800"}') == {"host": "h\ud800"}


def _parts(run: Run) -> list[bytes]:
    data = BytesIO(run.data)
    lines = list(data) if run.sizes is None else [data.read(size) for size in run.sizes]
    return [*lines, *([rest] if (rest := data.read()) else [])]


def test_what_a_shipper_writes_of_one_file_is_read_together() -> None:
    one, other = ({**FILEBEAT, "message": f"line {number}", "@timestamp": f"2022-10-05T17:05:0{number}Z"} for number in (1, 2))
    other = {**other, "log": {"offset": 18, "file": {"path": "/var/log/kafka/server.log"}}}
    run = run_of([json.dumps(one).encode(), json.dumps(other).encode()], Shapes())
    assert run is not None
    assert (_parts(run), run.host, run.file) == (
        [b"line 1\n", b"line 2\n"],
        "kafka-1",
        "/var/log/kafka/server.log",
    )
    for stranger in ({**FILEBEAT, "host": {"name": "kafka-2"}}, {**FILEBEAT, "level": "ERROR"}, {"message": "m", "file": "/a"}):
        assert run_of([json.dumps(one).encode(), json.dumps(stranger).encode()], Shapes()) is None
    assert run_of([b"a line", json.dumps(one).encode()], Shapes()) is None


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
        ("{path:x}", "`{path}` is nothing that a record has"),
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
    assert "name where it is" in (check_option("sasl.password", "hunter2") or "")
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


def by_python(value: bytes) -> object:
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
def test_a_document_says_what_it_says_to_python(text: str) -> None:
    said = content(text.encode())
    assert (said.data, said.host) == (b"m\n", "h")
    assert repr(fields_of(text.encode())) == repr(by_python(text.encode()))


def _seconds(line: RawLine) -> float | None:
    return None if line.ingested_at is None else line.ingested_at.timestamp()


def _taken(data: bytes, sizes: list[int] | None, starts: list[int], times_ms: list[int | None]) -> Taken:
    times = [(TIMESTAMP_NOT_AVAILABLE, 0) if each is None else (TIMESTAMP_LOG_APPEND_TIME, each) for each in times_ms]
    return Taken(data, sizes, starts, times)


def test_records_of_one_origin_that_follow_each_other_are_one_chunk() -> None:
    one, other = Origin("t/a", "t-0", {}), Origin("t/b", "t-0", {})
    joining = Joining()
    added = [
        joining.add(one, _taken(b"x\n", [2], [0], [1000]), 10),
        joining.add(one, _taken(b"y\nz\n", [4], [10], [None]), 20),
        joining.add(other, _taken(b"b\n", None, [20], [2000]), 30),
        joining.add(other, _taken(b"c\nd\n", None, [40, 50], [2000, 2001]), 60),
        joining.rest(),
        joining.rest(),
    ]
    chunks = [chunk for chunk in added if chunk is not None]
    assert [(c.source_id, c.offset, c.end, c.data) for c in chunks] == [
        ("t/a", 0, 20, b"x\ny\nz\n"),
        ("t/b", 20, 30, b"b\n"),
        ("t/b", 40, 60, b"c\nd\n"),
    ]
    lines = [(line.offset, line.value, _seconds(line)) for line in chunks[0].lines()]
    assert lines == [(0, b"x", 1.0), (10, b"y", None), (12, b"z", None)]
    assert [(line.offset, _seconds(line)) for line in chunks[2].lines()] == [(40, 2.0), (50, 2.001)]


@pytest.mark.parametrize(
    "time",
    [
        (TIMESTAMP_NOT_AVAILABLE, 0),
        (TIMESTAMP_CREATE_TIME, -1),
        (TIMESTAMP_CREATE_TIME, 1_700_000_000_000_000),
        (TIMESTAMP_CREATE_TIME, 2**63 - 1),
    ],
)
def test_a_record_whose_time_is_none_is_read_without(time: tuple[int, int]) -> None:
    assert Taken(b"x\n", [2], [7], [time]).place(1) == (8, None)


def test_a_chunk_of_joined_records_does_not_grow_without_end() -> None:
    joining, one = Joining(), Origin("t/a", "t-0", {})
    line = b"x" * (JOINED_BYTES // 3) + b"\n"
    chunks = [joining.add(one, _taken(line, None, [at], [None]), at + 1) for at in range(9)]
    assert sum(chunk is not None for chunk in chunks) == 4


@pytest.mark.parametrize("host", ["", "app-1"])
def test_what_a_program_writes_is_read_together_whatever_its_levels(host: str) -> None:
    where = {"host": {"name": host}} if host else {}
    values = [
        json.dumps({"log.level": level, "message": f"line {number}", "log.logger": f"a.B{number}", **where}).encode()
        for number, level in enumerate(["INFO", "WARN", "INFO"])
    ]
    run = run_of(values, Shapes())
    assert run is not None
    assert (_parts(run), run.host) == ([value + b"\n" for value in values], host)


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
