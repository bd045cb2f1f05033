"""Records of a partition become chunks of lines, whoever they are from and however they come."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import itemgetter

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka import source
from connectors.kafka.offsets import OffsetRange
from connectors.kafka.source import KafkaSource, place
from engine.codec import plain
from engine.joining import JOINED_BYTES
from engine.parse import unwrap_line
from engine.ports import Chunk
from tests.servers.shipping import SHIPPERS, document

Given = tuple[int, bytes | None, bytes | None]  # offset, key, value


def shipped(host: str, line: str) -> bytes:
    """Return a document of a line of a host's file."""
    return json.dumps({"host": host, "file": "/a.log", "message": line}).encode()


def chunks_of(monkeypatch: pytest.MonkeyPatch, lists: Sequence[Sequence[Given]], end: int, **labels: str) -> list[Chunk]:
    """Return the chunks of a partition whose consumer gives these lists of records."""

    def reading(*_: object) -> Iterator[list[Message]]:
        for some in lists:
            yield [
                Message("t", 0, offset, key=key, value=value, timestamp=(TIMESTAMP_CREATE_TIME, 1000 * offset))
                for offset, key, value in some
            ]

    monkeypatch.setattr(source, "reading", reading)
    return list(KafkaSource("b:1", "t", labels).chunks({"ranges": plain([OffsetRange(0, 0, end)]), "lost": []}))


def read(chunks: Sequence[Chunk]) -> list[tuple[str, int, str, float | None]]:
    """Return the source, the position and the ingest time of each line, and what is left of it without wrappers."""
    return [
        (line.source_id, line.offset, unwrap_line(line, []).text, line.ingested_at and line.ingested_at.timestamp())
        for chunk in chunks
        for line in chunk.lines()
    ]


def in_order(lines: Sequence[tuple[str, int, str, float | None]], name: str) -> bool:
    """Tell whether the lines of a source come in order."""
    places = [place for source_id, place, *_ in lines if source_id == name]
    return places == sorted(places)


def test_a_partition_is_in_the_same_slice_of_every_batch() -> None:
    kafka = KafkaSource("b:1", "t")

    def slices(**ends: int) -> list[list[int]]:
        before = {str(p): {"at": 0, "end": 9, "topic": ""} for p in range(5)}
        after = {**before, **{name[1:]: {"at": at, "end": 9, "topic": ""} for name, at in ends.items()}}
        return [[r["partition"] for r in slice_["ranges"]] for slice_ in kafka.partitions(before, after, 3)]

    assert slices(p0=9, p1=9, p2=1, p3=1, p4=1) == [[0, 3], [1, 4], [2]]
    assert slices(p0=1, p4=9) == [[0], [4]]
    assert slices(p4=1) == [[], [4]]
    assert slices() == []


def test_a_slice_without_a_range_asks_no_broker() -> None:
    assert list(KafkaSource("b:1", "t").chunks({"ranges": [], "lost": []})) == []


@given(
    st.lists(
        st.tuples(st.sampled_from([b"k", b"l", None]), st.sampled_from(["h", "g", "raw", "gap", "gone"]), st.integers(1, 30)),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 200),
    st.booleans(),
)
def test_each_line_has_its_source_place_and_time(runs: list[tuple[bytes | None, str, int]], cut: int, by_key: bool) -> None:
    given_: list[Given] = []
    wanted: list[tuple[str, int, str, float | None]] = []
    offset = 0
    for key, kind, count in runs:
        for _ in range(count):
            line = f"line\t{offset}"
            offset += 1
            if kind == "gap":
                continue
            value = None if kind == "gone" else line.encode() if kind == "raw" else shipped(kind, line)
            given_.append((offset - 1, key, value))
            name = f"t/{kind}:/a.log" if kind != "raw" else f"t/{key.decode()}" if key else "t-0"
            wanted += [(name, place(offset - 1), line, offset - 1.0)] if value is not None else []
    lists = [given_[at : at + cut] for at in range(0, len(given_), cut)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        chunks = chunks_of(monkeypatch, lists, offset, **({"who": "{key}"} if by_key else {}))
    lines = read(chunks)
    assert sorted(lines) == sorted(wanted)
    assert all(in_order(lines, name) for name in {name for name, *_ in wanted})
    ends = [(chunk.offset, chunk.next_offset) for chunk in chunks]
    assert (ends[0][0], ends[-1][1]) == (0, place(offset))
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    if by_key:
        keys = {place(at): key.decode() if key else None for at, key, _ in given_}
        labels = [(line.offset, line.labels.get("who")) for chunk in chunks for line in chunk.lines()]
        assert labels == [(at, keys[at]) for at, _ in labels]
        assert len(labels) == len(wanted)


FIELDS = {"n": "{field:k8s.pod}", "app": "{field:app}"}


@given(
    st.lists(
        st.tuples(st.sampled_from(["p-1", "p-2"]), st.sampled_from(["a", "b", None]), st.integers(1, 40)),
        min_size=1,
        max_size=6,
    ),
    st.integers(10, 100),
)
def test_labels_of_fields_are_those_of_each_record(runs: list[tuple[str, str | None, int]], cut: int) -> None:
    asked = [(pod, app) for pod, app, count in runs for _ in range(count)]
    documents: list[dict[str, object]] = [
        {
            "at": f"2022-10-05T17:05:{at % 60:02d}Z",
            "host": "h",
            "message": f"{at}",
            "k8s": {"pod": pod},
            **({"app": app} if app else {}),
        }
        for at, (pod, app) in enumerate(asked)
    ]
    given_ = [(at, None, json.dumps(document).encode()) for at, document in enumerate(documents)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        lists = [given_[at : at + cut] for at in range(0, len(given_), cut)]
        chunks = chunks_of(monkeypatch, lists, len(given_), **FIELDS)
    lines = [(line.labels.get("n"), line.labels.get("app")) for chunk in chunks for line in chunk.lines()]
    assert lines == asked


def chunked(chunks: Sequence[Chunk]) -> list[tuple[str, dict[str, str], int]]:
    """Return whose each chunk is, its labels, and how many lines it has."""
    return [(chunk.source_id, dict(chunk.labels), chunk.data.count(b"\n")) for chunk in chunks]


def test_lines_with_the_same_fields_are_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    given_: list[Given] = [
        (at, None, json.dumps({"n": at, "host": "h", "app": "a" if at < 200 else "b", "message": "m"}).encode())
        for at in range(300)
    ]
    chunks = chunks_of(monkeypatch, [given_[:150], given_[150:]], 300, app="{field:app}")
    assert chunked(chunks) == [("t/h", {"host": "h", "app": "a"}, 200), ("t/h", {"host": "h", "app": "b"}, 100)]


@pytest.mark.parametrize("in_turn", [1, 150])
def test_what_two_hosts_write_in_turn_is_one_chunk_each(monkeypatch: pytest.MonkeyPatch, in_turn: int) -> None:
    hosts = ["hg"[at // in_turn % 2] for at in range(600)]
    lists = [[(at, None, shipped(hosts[at], f"line {at}")) for at in range(first, first + 200)] for first in range(0, 600, 200)]
    chunks = chunks_of(monkeypatch, lists, 600)
    assert chunked(chunks) == [("t/h:/a.log", {"host": "h"}, 300), ("t/g:/a.log", {"host": "g"}, 300)]
    assert [(chunk.offset, chunk.next_offset) for chunk in chunks] == [(0, 0), (0, place(600))]


@pytest.mark.parametrize("shipper", SHIPPERS)
@pytest.mark.parametrize("hosts", [1, 3])
def test_lines_come_as_they_were_shipped(monkeypatch: pytest.MonkeyPatch, shipper: str, hosts: int) -> None:
    lines = [f'[2022-10-05 17:05:00,000] INFO said "{at}" (kafka)' if at % 3 else f"\tat a.b({at})" for at in range(1000)]
    given_: list[Given] = [
        (at, None, document(shipper, f"kafka-{at % hosts}", "/a.log", line, at)) for at, line in enumerate(lines)
    ]
    chunks = chunks_of(monkeypatch, [given_[at : at + 100] for at in range(0, 1000, 100)], 1000)
    assert {chunk.labels["host"] for chunk in chunks} == {f"kafka-{host}" for host in range(hosts)}
    assert [(at, text) for _, at, text, _ in sorted(read(chunks), key=itemgetter(1))] == [
        (place(at), line) for at, line in enumerate(lines)
    ]


def test_records_larger_than_a_chunk_are_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"x" * JOINED_BYTES
    chunks = chunks_of(monkeypatch, [[(at, None, line) for at in range(5)]], 5)
    assert [(chunk.offset, chunk.next_offset, len(chunk.data)) for chunk in chunks] == [
        (place(at), place(at + 1), len(line) + 1) for at in range(5)
    ]
