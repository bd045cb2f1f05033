"""The lines around evidence, read again from the files of a configuration."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from engine.cli import evidence_reading
from engine.cli.evidence_reading import InputReader
from engine.config import SourceSettings, load
from engine.errors import ReaderBusy, SourceMissing
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.neighbours import _events
from engine.ports import Chunk, Offset
from tests.rulepack.playing import plan
from tests.unit.cli.incidents import AT


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
