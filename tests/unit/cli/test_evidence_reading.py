"""The lines around evidence, read again from the files of a configuration."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.elasticsearch import open_source
from connectors.elasticsearch.cluster import SearchCluster
from engine.cli import evidence_reading
from engine.cli.evidence_reading import InputReader
from engine.config import SourceSettings, load
from engine.errors import ReaderBusy, SourceAway, SourceDenied, SourceMissing
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.neighbours import _events
from engine.ports import Chunk, Offset
from tests.rulepack.playing import plan
from tests.unit.cli.incidents import AT
from tests.unit.connectors.elasticsearch.documents_model import DocumentsModel


def line(number: int) -> str:
    return f"[2022-10-05 17:05:{number:02},000] INFO line {number} (x)"


def evidence(source: Path | str, number: int, origin: str = "") -> Evidence:
    return Evidence("e1", str(source), number, AT, line(number), origin)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "server.log"
    path.write_text("".join(f"{line(number)}\n" for number in range(1, 6)))
    return path


@pytest.fixture
def reader(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InputReader:
    monkeypatch.setattr(evidence_reading, "LISTED_S", 0.0)
    config = tmp_path / "tocsin.yml"
    config.write_text(f"sources:\n  - {{type: files, paths: ['{log.parent}/*.log*']}}\nstore: sqlite:///{tmp_path}/tocsin.db\n")
    return InputReader(load(config))


AROUND_3 = Neighbours((line(1), line(2)), (line(4), line(5)))


def test_they_are_read_from_the_file_of_the_line(reader: InputReader, log: Path) -> None:
    assert reader.may_read(evidence(log, 3))
    assert reader.neighbours(evidence(log, 3)) == AROUND_3
    assert reader.neighbours(evidence(f"{log}#broker-1", 3)) == AROUND_3, "a container in it"
    assert reader.neighbours(evidence(f"{log}~2", 3)) == AROUND_3, "a later stream of that name"


@pytest.mark.parametrize("packed", [False, True], ids=["rotated", "rotated and compressed"])
def test_a_file_is_found_after_rotation(reader: InputReader, log: Path, packed: bool) -> None:
    text = log.read_bytes()
    log.rename(f"{log}.1")
    if packed:
        Path(f"{log}.1.gz").write_bytes(gzip.compress(text))
        os.unlink(f"{log}.1")  # noqa: PTH108
    log.write_text(f"{line(50)}\n{line(51)}\n{line(52)}\n")
    assert reader.neighbours(evidence(log, 3)) == AROUND_3


def test_what_is_gone_or_was_rewritten_has_none(reader: InputReader, log: Path) -> None:
    log.write_text(f"{line(50)}\n" * 9)
    assert reader.may_read(evidence(log, 3))
    assert reader.neighbours(evidence(log, 3)) is None
    log.unlink()
    assert not reader.may_read(evidence(log, 3))


def test_only_files_of_the_configuration_are_read(reader: InputReader, log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text(log.read_text())
    assert reader.may_read(evidence(log, 3))
    for other in (evidence(tmp_path / "secret.log", 3), evidence(log, 0), evidence(log, 3, "elasticsearch:a/b")):
        assert not reader.may_read(other)
    assert reader.neighbours(evidence(tmp_path / "secret.log", 3)) is None


def test_a_line_deep_in_a_large_file_is_not_searched_for(
    reader: InputReader, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_reading, "MOST_BYTES", 1 << 20)
    many = 60_000
    log.write_text("".join(f"{line(number % 60)} {number}\n" for number in range(1, many)))
    deep = Evidence("e1", str(log), many - 9, AT, f"{line((many - 9) % 60)} {many - 9}")
    assert reader.neighbours(deep) is None
    monkeypatch.setattr(evidence_reading, "MOST_BYTES", 1 << 30)
    assert reader.neighbours(deep) is not None


def test_wrong_rules_do_not_keep_it_from_being_read(log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "wrong.yml").write_text("id: wrong\n")
    config = tmp_path / "tocsin.yml"
    config.write_text(f"sources: [{{type: files, paths: ['{log}']}}]\nrules: [rules]\nstore: sqlite:///{tmp_path}/tocsin.db\n")
    assert InputReader(load(config)).neighbours(evidence(log, 3)) == AROUND_3


def test_a_request_does_not_wait_long_for_another_and_what_was_read_is_kept(
    reader: InputReader, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_reading, "WAIT_S", 0.01)
    assert reader.neighbours(evidence(log, 3)) == AROUND_3
    begun, go_on = threading.Event(), threading.Event()

    def read_slowly(path: str) -> Iterator[Chunk]:
        begun.set()
        go_on.wait(10)
        yield from ()

    monkeypatch.setattr(evidence_reading, "read_chunks", read_slowly)
    other = threading.Thread(target=reader.neighbours, args=(evidence(log, 4),))
    other.start()
    assert begun.wait(10)
    with pytest.raises(ReaderBusy):
        reader.neighbours(evidence(log, 5))
    assert reader.neighbours(evidence(log, 3)) == AROUND_3, "without a look at the files"
    go_on.set()
    other.join(10)


class Topic:
    """A topic whose records are lines, one a second from AT on, of two hosts in turn; those before `begins` are gone."""

    def __init__(self, begins: int = 0, count: int = 40) -> None:
        self.begins, self.count, self.reads = begins, count, list[str]()
        self.start = 0

    def opened(self, source: SourceSettings, topic: str, start: str) -> Topic:
        self.reads.append(start)
        seconds = 0 if start == "earliest" else int((datetime.fromisoformat(start) - AT).total_seconds())
        self.start = min(max(seconds, self.begins), self.count)
        return self

    def initial(self) -> Offset:
        return {"0": {"at": self.start, "end": self.count, "topic": "t"}}

    def latest(self, start: Offset, max_lines: int) -> Offset:
        return {"0": {"at": min(self.count, self.start + max_lines), "end": self.count, "topic": "t"}}

    def partitions(self, start: Offset, end: Offset) -> list[dict[str, range]]:
        return [{"seconds": range(start["0"]["at"], end["0"]["at"])}]

    def chunks(self, slice_: dict[str, range]) -> Iterator[Chunk]:
        yield from (self.chunk(second) for second in slice_["seconds"])

    def chunk(self, second: int) -> Chunk:
        text = f"[{AT + timedelta(seconds=second):%Y-%m-%d %H:%M:%S},000] INFO second {second} (x)\n".encode()
        return Chunk(
            f"logs/host-{second % 2}:server.log", second << 24, text, 0, AT, {"host": "h"}, "logs-0", (second + 1) << 24
        )

    def evidence(self, second: int) -> Evidence:
        (match,) = _events(list(self.chunk(second).lines()), plan())
        return Evidence(match.event_id, match.source_id, 0, match.at, match.text)


@pytest.fixture
def topic_reader(tmp_path: Path) -> InputReader:
    config = tmp_path / "tocsin.yml"
    source = "{type: kafka, bootstrap_servers: 'k:9092', topics: [logs, logs-2], start: earliest}"
    config.write_text(f"sources:\n  - {source}\nstore: sqlite:///{tmp_path}/tocsin.db\n")
    return InputReader(load(config))


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic()
    monkeypatch.setattr(evidence_reading, "open_topic", topic.opened)
    return topic


def seconds(lines: tuple[str, ...]) -> list[int]:
    return [int(line.split("second ")[1].split(" ")[0]) for line in lines]


def test_they_are_read_from_the_topic_of_the_line(topic_reader: InputReader, topic: Topic) -> None:
    evidence = topic.evidence(20)
    assert topic_reader.may_read(evidence)
    around = topic_reader.neighbours(evidence)
    assert around is not None
    assert (seconds(around.before), seconds(around.after)) == ([10, 12, 14, 16, 18], [22, 24, 26, 28, 30])
    assert len(topic.reads) == 2, "seconds before it were too few, minutes were not"
    topic_reader.neighbours(evidence)
    assert len(topic.reads) == 2, "the answer is kept"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("logs/h:f", True), ("logs-0", True), ("logs-2/key", True), ("logs-2-11", True), ("logs-x", False), ("other/h:f", False)],
)
def test_only_lines_of_configured_topics_may_be_read(topic_reader: InputReader, source: str, expected: bool) -> None:
    assert topic_reader.may_read(Evidence("e1", source, 0, AT, "x")) is expected
    assert not topic_reader.may_read(Evidence("e1", source, 3, AT, "x")), "that is a file"


def test_a_topic_that_does_not_hold_the_time_any_more_says_so(topic_reader: InputReader, topic: Topic) -> None:
    evidence = topic.evidence(3)
    topic.begins = 30
    with pytest.raises(SourceMissing, match="The topic logs does not hold that time any longer: its retention has passed"):
        topic_reader.neighbours(evidence)


def test_a_line_that_comes_too_late_says_so(topic_reader: InputReader, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_reading, "MOST_RECORDS", 2)
    with pytest.raises(SourceMissing, match="not among the 2 records of the topic logs"):
        topic_reader.neighbours(topic.evidence(20))


def test_reading_a_topic_takes_bounded_time(topic_reader: InputReader, topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_reading, "READ_S", -1.0)
    with pytest.raises(SourceMissing):
        topic_reader.neighbours(topic.evidence(20))


class Cluster(DocumentsModel):
    """A cluster with the log of a broker: an event each second from AT on, of which the lines are a document each."""

    def write(self, count: int = 20) -> None:
        for second in range(count):
            at = AT + timedelta(seconds=second)
            for number, text in enumerate((f"[{at:%Y-%m-%d %H:%M:%S},000] INFO second {second} (x)", "\tat a.b.C.d(C.java:1)")):
                about = {"@timestamp": f"{at + timedelta(seconds=3):%Y-%m-%dT%H:%M:%S}.{number:03}Z", "host": {"name": "h"}}
                self.documents["logs-a-1", f"{second}/{number}"] = {**about, "message": text, "log": {"file": {"path": "a"}}}

    def evidence(self, reader: InputReader, second: int) -> Evidence:
        """Return the event of a second, as a job that read all documents has it."""
        source = open_source({"connection": {"urls": ["http://es1:9200"]}, "indices": "logs-a-*", "labels": {"cluster": "c"}})
        lines = [line for chunk in source.around("logs-a-1", "10/0") for line in chunk.lines()]
        (match,) = [event for event in _events(lines, plan()) if f"second {second} " in event.text]
        return Evidence(match.event_id, match.source_id, 0, match.at, match.text, match.origin)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Cluster]:
    """Two clusters with indices of the same name, of which the first holds nothing."""
    clusters = {"http://es0:9200": Cluster(), "http://es1:9200": Cluster()}
    clusters["http://es1:9200"].write()
    monkeypatch.setattr(SearchCluster, "of", lambda connection: clusters[connection["urls"][0]])
    return clusters


@pytest.fixture
def index_reader(tmp_path: Path) -> InputReader:
    return _index_reader(tmp_path)


def _index_reader(folder: Path, **settings: Any) -> InputReader:
    config = folder / "tocsin.yml"
    common = {"type": "elasticsearch", "indices": ["logs-*", "logs-a-*"], **settings}
    sources = [{**common, "url": f"http://es{number}:9200"} for number in range(2)]
    config.write_text(json.dumps({"sources": sources, "store": f"sqlite:///{folder}/tocsin.db"}))
    return InputReader(load(config))


def test_they_are_read_from_the_indices_of_the_document(index_reader: InputReader, clusters: dict[str, Cluster]) -> None:
    cluster = clusters["http://es1:9200"]
    evidence = cluster.evidence(index_reader, 10)
    assert evidence.origin == "elasticsearch:logs-a-1/10%2F0"
    assert index_reader.may_read(evidence)
    around = index_reader.neighbours(evidence)
    assert around is not None
    assert (seconds(around.before), seconds(around.after)) == ([5, 6, 7, 8, 9], [11, 12, 13, 14, 15])
    assert all(text.endswith("\n\tat a.b.C.d(C.java:1)") for text in (*around.before, *around.after))
    asked = len(cluster.asked)
    index_reader.neighbours(evidence)
    assert len(cluster.asked) == asked, "the answer is kept"


@pytest.mark.parametrize(
    ("source", "origin", "expected"),
    [
        ("logs-a-*/h:a", "elasticsearch:logs-a-1/x", True),
        ("logs-*/h:a", "elasticsearch:other/x", True),
        ("logs-*", "elasticsearch:logs-1/x", True),
        ("logs-a-*/h:a", "", False),
        ("logs-a-*/h:a", "elasticsearch:logs-a-1", False),
        ("logs-a-*/h:a", "other:logs-a-1/x", False),
        ("logs/h:a", "elasticsearch:logs-a-1/x", False),
        ("others-*/h:a", "elasticsearch:others-1/x", False),
    ],
)
def test_only_documents_of_configured_indices_may_be_read(
    index_reader: InputReader, source: str, origin: str, expected: bool
) -> None:
    assert index_reader.may_read(Evidence("e1", source, 0, AT, "x", origin)) is expected


def test_a_document_that_is_gone_says_so(index_reader: InputReader, clusters: dict[str, Cluster]) -> None:
    evidence = clusters["http://es1:9200"].evidence(index_reader, 10)
    clusters["http://es1:9200"].documents.clear()
    with pytest.raises(SourceMissing, match=r"The document of the line is not in logs-a-\* any longer: it was deleted"):
        index_reader.neighbours(evidence)


def test_a_document_that_was_changed_or_is_alone_says_so(index_reader: InputReader, clusters: dict[str, Cluster]) -> None:
    cluster = clusters["http://es1:9200"]
    evidence = cluster.evidence(index_reader, 10)
    cluster.documents["logs-a-1", "10/0"] = {**cluster.documents["logs-a-1", "10/0"], "message": "changed"}
    with pytest.raises(SourceMissing, match=r"No other event of its log is in logs-a-\* within a day, or its document was"):
        index_reader.neighbours(evidence)


def test_a_cluster_that_does_not_answer_and_a_missing_password_say_so(
    clusters: dict[str, Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = _index_reader(tmp_path)
    evidence = clusters["http://es1:9200"].evidence(reader, 10)

    def away(*_: Any) -> None:
        raise SourceAway("es0", "Elasticsearch at es0:9200 does not answer in time")

    monkeypatch.setattr(clusters["http://es0:9200"], "page", away)
    assert reader.neighbours(evidence) is not None, "the other one has it"
    clusters["http://es1:9200"].documents.clear()
    reader = _index_reader(tmp_path)
    with pytest.raises(SourceAway, match="does not answer in time"):
        reader.neighbours(evidence)
    monkeypatch.undo()
    reader = _index_reader(tmp_path, api_key="env:TOCSIN_NO_SUCH_KEY", unprotected=True)
    with pytest.raises(SourceDenied, match="TOCSIN_NO_SUCH_KEY"):
        reader.neighbours(evidence)
