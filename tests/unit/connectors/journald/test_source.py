"""A journal as a stream: nothing lost, nothing twice, over restarts, removal and what may not be read."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connectors.journald import JournaldSource, check_label, open_source
from connectors.journald import program as module
from engine.errors import DataLoss, SourceAway, SourceDenied, SourceError
from engine.parse.unwrapping import unwrap_line
from engine.ports import Chunk, Offset
from tests.standins.journal import BEGIN_US, Journal

REAL = Path(__file__).with_name("real.journal.gz")  # written by systemd-journal-remote 252; its first six entries are ENTRIES


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    made = Journal(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}{os.environ['PATH']}")
    return made


@pytest.fixture
def opened(journal: Journal) -> Iterator[Callable[..., JournaldSource]]:
    sources: list[JournaldSource] = []

    def open_one(**settings: Any) -> JournaldSource:
        sources.append(open_source({"root": str(journal.folder), **settings}))
        return sources[-1]

    yield open_one
    for source in sources:
        source.close()


def batch(source: JournaldSource, start: Offset, end: Offset, losses: list[DataLoss] | None = None) -> list[Chunk]:
    chunks: list[Chunk] = []
    for slice_ in through_json(source.partitions(start, end)):
        try:
            chunks.extend(source.chunks(slice_))
        except DataLoss as loss:
            if losses is None:
                raise
            losses.append(loss)
    return chunks


def texts(chunks: list[Chunk]) -> list[str]:
    return [unwrap_line(line, []).text for chunk in chunks for line in chunk.lines()]


def await_next(source: JournaldSource, start: Offset) -> Offset:
    """Return the next offset; what was just written takes journalctl a moment."""
    until = time.monotonic() + 30
    while (end := through_json(source.latest(start))) == start:
        assert time.monotonic() < until, "the journal was not followed"
    return end


def test_entries_are_read_once_by_source_with_their_time_and_what_printed_them(journal: Journal, opened: Any) -> None:
    journal.write("one")
    journal.write("two", unit="docker.service", CONTAINER_NAME="kafka-1", IMAGE_NAME="apache/kafka:3.9.0")
    journal.write("three")
    journal.write("four", unit=None, _TRANSPORT="kernel", SYSLOG_IDENTIFIER="kernel")
    source = opened(labels={"cluster": "prod"})
    start = through_json(source.initial())
    end = through_json(source.latest(start))
    chunks = batch(source, start, end)
    assert {chunk.source_id: texts([chunk]) for chunk in chunks} == {
        "journald/broker-1:kafka.service": ["one", "three"],
        "journald/broker-1:kafka-1": ["two"],
        "journald/broker-1:kernel": ["four"],
    }
    assert chunks[1].labels == {
        "host": "broker-1",
        "unit": "docker.service",
        "container": "kafka-1",
        "image": "apache/kafka:3.9.0",
        "cluster": "prod",
    }
    lines = [line for chunk in chunks for line in chunk.lines()]
    assert [line.offset for line in lines] == [0, 2, 1, 3]
    assert lines[0].ingested_at is not None
    assert lines[0].ingested_at.timestamp() == BEGIN_US / 1e6 + 0.001
    assert (chunks[0].offset, chunks[-1].next_offset) == (0, 4)
    assert through_json(source.latest(end)) == end


def test_a_journal_is_followed_and_a_restart_goes_on_behind_the_cursor(journal: Journal, opened: Any) -> None:
    journal.write("one")
    source = opened()
    first = through_json(source.latest(source.initial()))
    journal.write("two")
    second = await_next(source, first)
    assert texts(batch(source, first, second)) == ["two"]
    journal.write("three")
    again = opened()
    third = through_json(again.latest(second))
    assert texts(batch(again, second, third)) == ["three"]
    assert texts(batch(again, first, second)) == ["two"], "a batch that is done again is the same"


def test_batches_are_bounded_and_say_that_more_follows(journal: Journal, opened: Any) -> None:
    for number in range(10):
        journal.write(f"line {number}")
    source, read = opened(), []
    offset = through_json(source.initial())
    while (end := through_json(source.latest(offset, 4))) != offset:
        read.append(texts(batch(source, offset, end)))
        (progress,) = source.progress(end)
        assert progress.caught_up == (len(read) == 3)
        offset = end
    assert [len(lines) for lines in read] == [4, 4, 2]
    assert [text for lines in read for text in lines] == [f"line {number}" for number in range(10)]


def test_bounded_input_ends_with_what_is_newest_at_the_first_look(journal: Journal, opened: Any) -> None:
    journal.write("one")
    journal.write("two")
    source = opened(final=True)
    first = through_json(source.latest(source.initial(), 1))
    journal.write("three")
    second = through_json(source.latest(first))
    assert texts(batch(source, first, second)) == ["two"]
    assert source.latest(second) == second


@pytest.mark.parametrize(
    ("start", "expected"), [("earliest", ["one", "two"]), ("latest", []), ("2022-10-05T18:00:00Z", ["two"])]
)
def test_a_first_run_starts_where_it_is_told_to(journal: Journal, opened: Any, start: str, expected: list[str]) -> None:
    journal.write("one")
    journal.write("two", at_us=BEGIN_US + 3_600_000_000)
    source = opened(start=start)
    begin = through_json(source.initial())
    assert texts(batch(source, begin, through_json(source.latest(begin)))) == expected


def test_an_empty_journal_is_waited_for(journal: Journal, opened: Any) -> None:
    source = opened()
    start = through_json(source.initial())
    assert source.latest(start) == start
    journal.write("one")
    assert texts(batch(source, start, await_next(source, start))) == ["one"]


def test_entries_that_were_removed_before_they_were_read_are_a_loss(journal: Journal, opened: Any) -> None:
    for number in range(10):
        journal.write(f"line {number}")
    source, losses = opened(), list[DataLoss]()
    first = through_json(source.latest(source.initial(), 4))
    last = through_json(source.latest(first))
    journal.vacuum(keep=3)
    chunks = batch(source, first, last, losses)
    assert texts(chunks) == ["line 7", "line 8", "line 9"]
    assert [(loss.lost_from, loss.lost_to) for loss in losses] == [(4, 7)]
    assert "3 entries were removed" in losses[0].why
    assert (chunks[0].offset, chunks[-1].next_offset) == (7, 10)


def test_only_what_was_read_is_gone_is_no_loss(journal: Journal, opened: Any) -> None:
    for number in range(4):
        journal.write(f"line {number}")
    source = opened()
    first = through_json(source.latest(source.initial(), 2))
    journal.vacuum(keep=2)
    again = opened()
    assert texts(batch(again, first, through_json(again.latest(first)))) == ["line 2", "line 3"]


def test_a_journal_that_is_gone_as_a_whole_is_a_loss_of_all_that_was_planned(journal: Journal, opened: Any) -> None:
    for number in range(4):
        journal.write(f"line {number}")
    source, losses = opened(), list[DataLoss]()
    first = through_json(source.latest(source.initial(), 1))
    last = through_json(source.latest(first))
    journal.vacuum(keep=0)
    assert texts(batch(source, first, last, losses)) == []
    assert [(loss.lost_from, loss.lost_to) for loss in losses] == [(1, 4)]
    journal.write("line 4")
    assert texts(batch(source, first, last, losses)) == [], "what comes later is of the next batch"


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ({"unit": ["kafka"]}, ["broker", "exited"]),
        ({"unit": ["kafka*", "!kafka-ui*"]}, ["broker", "exited"]),
        ({"unit": ["kernel"]}, ["killed"]),
        ({"container": ["connect-*"]}, ["worker"]),
        ({"unit": ["kafka.service"], "container": ["connect-*"]}, ["broker", "worker", "exited"]),
        ({"unit": ["!init.scope", "!sshd"]}, ["broker", "ui", "worker", "killed"]),
    ],
)
def test_units_and_containers_are_chosen_by_patterns(
    journal: Journal, opened: Any, select: Mapping[str, list[str]], expected: list[str]
) -> None:
    journal.write("broker")
    journal.write("ui", unit="kafka-ui.service")
    journal.write("worker", unit="docker.service", CONTAINER_NAME="connect-1")
    journal.write("login", unit="sshd.service")
    journal.write("exited", unit="init.scope", UNIT="kafka.service") if "!init.scope" not in select.get("unit", []) else None
    journal.write("killed", unit=None, _TRANSPORT="kernel")
    source = opened(select=select)
    start = through_json(source.initial())
    chunks = batch(source, start, through_json(source.latest(start)))
    assert sorted(texts(chunks)) == sorted(expected)


def test_messages_of_bytes_of_many_lines_and_in_parts_are_read_as_they_were_printed(journal: Journal, opened: Any) -> None:
    journal.write(list(b"caf\xe9 \x1b[31mred"))
    journal.write("first\n\tat second")
    journal.write("x" * 5000, CONTAINER_PARTIAL_MESSAGE="true")
    journal.write(["twice", "given"])
    journal.write(None)
    source = opened()
    start = through_json(source.initial())
    chunks = batch(source, start, through_json(source.latest(start)))
    records = [unwrap_line(line, []) for chunk in chunks for line in chunk.lines()]
    assert [record.text for record in records] == ["caf� red", "first\n\tat second", "x" * 5000, "twice\ngiven"]
    assert [record.partial for record in records] == [False, False, True, False]


def test_without_the_program_that_is_said_and_waited_for(
    journal: Journal, opened: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal.write("one")
    source = opened()
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SourceError, match="there is no program journalctl here; it comes with systemd") as missing:
        source.check()
    assert not isinstance(missing.value, SourceAway)
    with pytest.raises(SourceAway, match="no program journalctl"):
        source.latest(source.initial())
    monkeypatch.setenv("PATH", path)
    assert source.latest(source.initial()) != source.initial()


def test_a_journal_that_may_not_be_read_names_the_group(journal: Journal, opened: Any) -> None:
    journal.write("one")
    journal.complain("No journal files were opened due to insufficient permissions.", 1)
    source = opened()
    with pytest.raises(SourceDenied, match="members of the group systemd-journal may"):
        source.check()
    with pytest.raises(SourceAway, match="group systemd-journal"):
        source.latest(source.initial())
    journal.recover()
    assert source.latest(source.initial()) != source.initial()


def test_what_others_may_read_only_is_told_beside_what_can_be_read(journal: Journal, opened: Any) -> None:
    journal.write("one")
    journal.complain("Hint: You are currently not seeing messages from other users and the system.")
    source = opened()
    start = source.initial()
    assert texts(batch(source, start, source.latest(start))) == ["one"]
    (error,) = source.unreadable().values()
    assert "usermod -aG systemd-journal" in str(error)


def test_a_program_that_fails_is_away_and_started_again(journal: Journal, opened: Any) -> None:
    journal.write("one")
    source = opened()
    first = through_json(source.latest(source.initial()))
    journal.complain("Failed to open files: Input/output error", 1)
    source.close()
    with pytest.raises(SourceAway, match="journalctl ended with 1: Failed to open files: Input/output error"):
        source.latest(first)
    journal.recover()
    journal.write("two")
    assert texts(batch(source, first, await_next(source, first))) == ["two"]


def test_a_program_that_ends_while_it_follows_is_started_again_behind_the_cursor(journal: Journal, opened: Any) -> None:
    journal.write("one")
    source = opened()
    first = through_json(source.latest(source.initial()))
    journal.complain("Killed", 1)
    until = time.monotonic() + 30
    with pytest.raises(SourceAway, match="journalctl ended with 1: Killed"):
        while time.monotonic() < until:
            assert source.latest(first) == first
    journal.recover()
    journal.write("two")
    assert texts(batch(source, first, await_next(source, first))) == ["two"]


def test_more_entries_than_are_held_are_read_in_order(journal: Journal, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PENDING", 5)
    for number in range(30):
        journal.write(f"line {number}")
    source, read = opened(), list[str]()
    offset = through_json(source.initial())
    while len(read) < 30:
        end = await_next(source, offset)
        read += texts(batch(source, offset, end))
        offset = end
    assert read == [f"line {number}" for number in range(30)]


def test_labels_are_fixed_text() -> None:
    assert check_label("prod") is None
    assert "fixed text" in str(check_label("{path:x}"))


@pytest.mark.skipif(shutil.which("journalctl") is None, reason="there is no journalctl here")
@pytest.mark.parametrize("final", [True, False])
def test_the_real_program_reads_a_real_journal(tmp_path: Path, final: bool) -> None:
    (tmp_path / "real.journal").write_bytes(gzip.decompress(REAL.read_bytes()))
    source = open_source({"root": str(tmp_path), "final": final})
    try:
        assert "newest entry 2022-10-05 17:05:39 UTC" in source.check()
        offset, records = through_json(source.initial()), []
        while (end := through_json(source.latest(offset, 4))) != offset:
            for chunk in batch(source, offset, end):
                records += [(chunk.source_id, unwrap_line(line, [])) for line in chunk.lines()]
            offset = end
    finally:
        source.close()
    assert [(name.removeprefix("journald/broker-1:"), record.text, record.partial) for name, record in records] == [
        ("kafka.service", "one line", True),
        ("kafka.service", "multi\n  line", False),
        ("kafka.service", "bytes ��", False),
        ("kafka-1", "x" * 5000, True),
        ("init.scope", "kafka.service: Main process exited, code=killed, status=9/KILL", False),
        ("kernel", "Out of memory", False),
    ]
