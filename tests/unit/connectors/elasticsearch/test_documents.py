"""Documents become lines: whose they are, in which order, and with which labels."""

import json
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from connectors.elasticsearch.answers import DocumentHit
from connectors.elasticsearch.documents import NO_TIME, DocumentReader, IndexedLine, in_order, moment

BEAT = {
    "@timestamp": "2022-10-05T08:05:40.123Z",
    "host": {"name": "kafka-1"},
    "log": {"offset": 17, "file": {"path": "/var/log/kafka/server.log", "inode": "1312"}},
    "message": "started",
    "event": {"ingested": "2022-10-05T08:05:41.5Z"},
}


def hit(source: Any, number: int = 0, index: str = "logs-1") -> DocumentHit:
    data = source if isinstance(source, bytes) else json.dumps(source).encode()
    return DocumentHit(index, f"id-{number}", number, Raw(data))


def read(*sources: Any, **labels: str) -> list[IndexedLine]:
    return list(DocumentReader("logs-*", labels).lines(hit(source, n) for n, source in enumerate(sources)))


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (BEAT, "logs-*/kafka-1:/var/log/kafka/server.log"),
        ({"host.name": "kafka-1", "log.file.path": "/a.log", "message": "x"}, "logs-*/kafka-1:/a.log"),
        ({"kubernetes": {"pod_name": "kafka-0", "container_name": "kafka"}, "log": "x"}, "logs-*/kafka-0:kafka"),
        ({"host": "h", "file": "f#1", "message": "x"}, "logs-*/h:f%231"),
        ({"host": ["a", "b"], "file": "f", "message": "x"}, "logs-*/f"),
        ({"message": "x"}, "logs-*"),
        ({"host": {"name": "x" * 5000}, "message": "x"}, "logs-*"),
    ],
)
def test_host_and_file_name_the_source(document: dict[str, Any], name: str) -> None:
    (line,) = read(document)
    assert line.source.source_id == name
    assert json.loads(line.data) == document


@pytest.mark.parametrize("odd", ["nested", "dotted", "in a list", "numbers as text"])
def test_where_a_line_stands_is_read_however_it_is_written(odd: str) -> None:
    document: dict[str, Any] = {
        "nested": BEAT,
        "dotted": {
            "@timestamp": BEAT["@timestamp"],
            "event.ingested": "2022-10-05T08:05:41.5Z",
            "log.offset": 17,
            "log.file.inode": 1312,
            "message": "started",
        },
        "in a list": {**BEAT, "log": {"offset": [17], "file": {"inode": ["1312"]}}, "host": ["a"]},
        "numbers as text": {**BEAT, "log": {"offset": "17", "file": {"inode": 1312}}},
    }[odd]
    (line,) = read(document)
    assert (line.offset, line.message) == (17, "started")
    assert line.at == datetime(2022, 10, 5, 8, 5, 40, 123000, UTC).timestamp()
    assert line.file == "1312"
    assert line.ingested == "2022-10-05T08:05:41.5Z"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "file", "offset", "path", "ingested", "inode"]), inner)
    ),
    max_leaves=8,
)
odd_documents = st.dictionaries(
    st.sampled_from(["@timestamp", "message", "log", "host", "event", "file", "log.offset", "host.name", "kubernetes"]),
    json_values,
)


@given(odd_documents)
@example({"log.offset": float("inf")})
def test_no_document_is_too_odd_to_be_a_line(document: dict[str, Any]) -> None:
    (line,) = read(document)
    assert json.loads(line.data) == document
    assert line.data.endswith(b"\n")
    assert line.data.count(b"\n") == 1
    moment(line.ingested)


def test_a_document_over_several_lines_is_one_and_one_that_is_not_stored_is_none() -> None:
    pretty = json.dumps(BEAT, indent=2).replace("\n", "\r\n").encode()
    whole, *others = read(pretty, b"")
    assert others == []
    assert whole.data.count(b"\n") == 1
    assert json.loads(whole.data) == BEAT


def test_labels_are_made_of_index_host_file_and_fields() -> None:
    labels = {"cluster": "prod", "day": r"{index:\d+$}", "where": "{field:cloud.region}", "none": "{field:cloud.zone}"}
    line, other = read({**BEAT, "cloud": {"region": "eu"}}, {"message": "x"}, **labels)
    assert line.source.labels == {"host": "kafka-1", "cluster": "prod", "day": "1", "where": "eu"}
    assert other.source.labels == {"cluster": "prod", "day": "1"}


def test_lines_of_one_file_are_put_in_order_and_one_that_was_sent_twice_is_one() -> None:
    documents = [
        {**BEAT, "message": f"line {n}", "log": {"offset": n * 9, "file": {"path": "/a.log", "inode": "1"}}} for n in range(20)
    ]
    documents += [documents[7], {**documents[0], "@timestamp": "2026-01-01T00:00:00Z"}]
    Random(3).shuffle(documents)
    ((_, lines),) = in_order(read(*documents)).items()
    assert [line.message for line in lines] == [f"line {n}" for n in range(20)]


def test_a_file_that_was_rotated_comes_before_the_one_after_it() -> None:
    old = [{**BEAT, "message": f"old {n}", "log": {"offset": 900 + n, "file": {"path": "/a", "inode": "1"}}} for n in range(3)]
    new = [{**BEAT, "message": f"new {n}", "log": {"offset": n, "file": {"path": "/a", "inode": "2"}}} for n in range(3)]
    ((_, lines),) = in_order(read(old[1], old[0], new[1], old[2], new[0], new[2])).items()
    assert [line.message for line in lines] == ["old 0", "old 1", "old 2", "new 0", "new 1", "new 2"]


@pytest.mark.parametrize("inode", [{}, {"inode": "1"}])
def test_a_file_that_begins_anew_comes_behind_what_it_held_before(inode: dict[str, str]) -> None:
    """Older shippers name no inode, and a file that is copied and truncated keeps its own."""

    def written(text: str, offset: int, second: int) -> dict[str, Any]:
        stamp = f"2022-10-05T08:05:{second:02}Z"
        return {**BEAT, "@timestamp": stamp, "message": text, "log": {"offset": offset, "file": {"path": "/a", **inode}}}

    old = [written(f"old {n}", n * 10, n) for n in range(5)]
    new = [written(f"new {n}", n * 10, 10 + n) for n in range(5)]
    ((_, lines),) = in_order(read(*old[:3], old[4], old[3], new[1], new[0], *new[2:])).items()
    assert [line.message for line in lines] == [f"{age} {n}" for age in ("old", "new") for n in range(5)]


def test_lines_at_one_place_that_say_something_else_are_two() -> None:
    place = {"log": {"offset": 0, "file": {"path": "/a", "inode": "1"}}}
    ((_, lines),) = in_order(read({**place, "body": "one"}, {**place, "body": "two"})).items()
    assert len(lines) == 2


def test_lines_without_a_place_stay_as_they_come() -> None:
    documents = [{"host": "h", "message": str(n)} for n in (2, 0, 1)]
    ((_, lines),) = in_order(read(*documents)).items()
    assert [line.message for line in lines] == ["2", "0", "1"]
    assert {line.at for line in lines} == {NO_TIME}


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2022-10-05T08:05:40Z", datetime(2022, 10, 5, 8, 5, 40, tzinfo=UTC)),
        ("2022-10-05T08:05:40.123456789Z", datetime(2022, 10, 5, 8, 5, 40, 123456, UTC)),
        ("2022-10-05T17:05:40+09:00", datetime(2022, 10, 5, 8, 5, 40, tzinfo=UTC)),
        ("2022-10-05T08:05:40", datetime(2022, 10, 5, 8, 5, 40, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
    ],
)
def test_stamps_are_read(stamp: str, at: datetime | None) -> None:
    assert moment(stamp) == at


@pytest.mark.parametrize("dataset", ["tocsin.incidents", "tocsin.incident_changes"])
@pytest.mark.parametrize("shape", ['{"event": {"dataset": "%s"}}', '{"event.dataset": "%s", "message": ["a", "b"]}'])
def test_an_incident_is_no_line(dataset: str, shape: str) -> None:
    own, other = ((shape % name).encode() for name in (dataset, "kafka.log"))
    assert [line.data for line in read(own, other, own)] == [other + b"\n"]


def test_the_source_of_a_container_is_looked_up_once_whatever_its_lines_say() -> None:
    documents = [{"log": f"line {n}", "kubernetes": {"pod_name": "kafka-0", "container_name": "kafka"}} for n in range(9)]
    reader = DocumentReader("logs-*", {})
    lines = list(reader.lines(hit(document, n) for n, document in enumerate(documents)))
    assert {line.source.source_id for line in lines} == {"logs-*/kafka-0:kafka"}
    assert [line.message for line in lines] == [f"line {n}" for n in range(9)]
    assert reader._cached_source.cache_info().misses == 1
    assert [line.source.labels["text"] for line in read(*documents, text="{field:log}")] == [f"line {n}" for n in range(9)]
