"""What is no log, or an odd one: pipes, devices, NULs, lines without end, what tocsin writes itself."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from connectors.files import FilesSource, find, read_path
from connectors.files import advancing as module
from connectors.files.opening import is_binary
from engine.cli.intake import Intake
from engine.errors import SourceError
from engine.model.records import RawLine
from tests.unit.connectors.files.triggers import append, reader


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    (tmp_path / "good.log").write_text("one\n")
    os.mkfifo(tmp_path / "a-pipe.log")
    (tmp_path / "b-device.log").symlink_to("/dev/zero")
    (tmp_path / "c-stdin.log").symlink_to("/dev/stdin")
    return tmp_path


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["", "*.log"])
def test_pipes_and_devices_in_a_folder_are_named_and_the_rest_is_followed(odd: Path, pattern: str) -> None:
    query = reader(odd, pattern)
    assert query.text() == "one\n"
    told = {Path(what).name: str(error) for what, error in query.source.unreadable().items()}
    assert "is a pipe, and only regular files are read" in told["a-pipe.log"]
    assert "is a device, and only regular files are read" in told["b-device.log"]
    assert query.source.check().files == (str(odd / "good.log"),)


@pytest.mark.timeout(20)
def test_a_pipe_that_is_named_is_not_followed(odd: Path) -> None:
    source = FilesSource([str(odd / "a-pipe.log"), str(odd / "good.log")])
    source.latest(source.initial())
    assert [Path(what).name for what in source.unreadable()] == ["a-pipe.log"]
    assert "a pipe can be read by: tocsin scan" in str(source.check().errors[0])


@pytest.mark.timeout(20)
def test_a_scan_of_a_folder_names_what_is_no_file(odd: Path) -> None:
    (odd / "c-stdin.log").unlink()
    intake = Intake([str(odd)], {})
    assert [line.value for line in intake.lines() if isinstance(line, RawLine)] == [b"one"]
    assert [Path(sentence.partition(":")[0]).name for sentence in intake.refused] == ["a-pipe.log", "b-device.log"]


@pytest.mark.timeout(20)
def test_a_scan_reads_a_pipe_that_is_named(odd: Path) -> None:
    pipe = odd / "a-pipe.log"
    writer = threading.Thread(target=lambda: pipe.write_text("from a pipe\n"))
    writer.start()
    assert [line.value for line in Intake([str(pipe)], {}).lines() if isinstance(line, RawLine)] == [b"from a pipe"]
    writer.join()


def test_a_scan_reads_what_a_shell_substitutes_for_a_command() -> None:
    reads, writes = os.pipe()
    os.write(writes, b"substituted\n")
    os.close(writes)
    assert [line.value for line in Intake([f"/dev/fd/{reads}"], {}).lines() if isinstance(line, RawLine)] == [b"substituted"]
    os.close(reads)


def test_a_file_that_is_replaced_by_a_pipe_ends_no_look(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("one\n")
    query = reader(tmp_path)
    query.trigger()
    log.unlink()
    os.mkfifo(log)
    append(tmp_path / "other.log", "two\n")
    assert query.text() == "two\n"


# --- NULs ---------------------------------------------------------------------------------------------------------------


def test_a_log_cut_under_a_program_that_does_not_append_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    with path.open("wb", buffering=0) as log:
        log.write(b"one\n" * 5000)
        query = reader(tmp_path)
        query.trigger()
        for text in ("two\n", "three\n", "four\n"):
            os.truncate(path, 0)
            log.write(text.encode())
            (chunk,) = query.trigger()
            assert chunk.data.decode() == text
            assert path.stat().st_size > 20_000
    assert len(query.losses) == 3


def test_a_log_that_begins_with_a_large_hole_is_scanned_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    with path.open("wb") as log:
        log.seek(50_000_000)
        log.write(b"one\ntwo\n")
    assert reader(tmp_path).text() == "one\ntwo\n"
    scanned = [(line.value, line.offset) for line in read_path(str(path)) if isinstance(line, RawLine)]
    assert scanned == [(b"one", 50_000_000), (b"two", 50_000_004)]


def test_nuls_that_a_crash_left_before_a_line_are_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"one\n" + bytes(4000) + b"two\nthree\0 and more\n")
    scanned = [(line.value, line.offset, line.number) for line in read_path(str(path)) if isinstance(line, RawLine)]
    assert scanned == [(b"one", 0, 1), (b"two", 4004, 2), (b"three\0 and more", 4008, 3)]
    chunks = reader(tmp_path).trigger()
    assert [(chunk.data, chunk.offset, chunk.next_offset, chunk.number) for chunk in chunks] == [
        (b"one\n", 0, 4004, 1),
        (b"two\nthree\0 and more\n", 4004, 4024, 2),
    ]


def test_a_nul_in_a_first_line_refuses_no_log(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"[2022-01-01 00:00:00,000] INFO key=\0\x01 (a.B)\n" + b"[2022-01-01 00:00:01,000] INFO fine (a.B)\n")
    assert len([line for line in read_path(str(path)) if isinstance(line, RawLine)]) == 2
    assert len(reader(tmp_path).trigger()) == 1


@pytest.mark.parametrize(
    ("head", "binary"),
    [
        (b"", False),
        (b"a line\n", False),
        (bytes(100) + b"a line\n", False),
        (b"value \0 of a key, in a line that is long enough\n", False),
        (bytes(100), True),
        (b"\x7fELF\x02\x01\x01" + bytes(9), True),
        ("UTF-16 without a mark\n".encode("utf-16-le"), True),
        (bytes(range(256)) * 32, True),
        (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", True),
    ],
)
def test_binary_is_what_holds_nuls_and_many_control_characters(head: bytes, binary: bool) -> None:
    assert is_binary(head) is binary


# --- lines without end --------------------------------------------------------------------------------------------------


def test_a_line_without_end_is_searched_for_its_end_where_the_last_look_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.log"
    path.write_bytes(b"start\n")
    query = reader(tmp_path)
    query.trigger()
    counted: list[int] = []

    def count(block: bytes) -> int:
        counted.append(len(block))
        return block.count(b"\n")

    monkeypatch.setattr(module, "line_ends", count)
    for _ in range(20):
        with path.open("ab") as log:
            log.write(b" 42%\r" * 10_000)
        assert query.text() == ""
    assert sum(counted) == 20 * 50_000
    append(path, "\n")
    assert len(query.text()) == 20 * 50_000 + 1


def test_a_line_longer_than_any_is_read_in_pieces_as_in_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES", 100_000)
    monkeypatch.setattr("connectors.files.reading.LINE_BYTES", 100_000)
    monkeypatch.setattr("connectors.files.reading.CHUNK_BYTES", 10_000)
    path = tmp_path / "progress.log"
    path.write_bytes(b"start\n" + b" 42%\r" * 50_000 + b"\nend\n")
    query = reader(tmp_path)
    pieces = [line.value for chunk in query.trigger() for line in chunk.lines()]
    assert pieces == [line.value for line in read_path(str(path)) if isinstance(line, RawLine)]
    assert max(map(len, pieces)) == 99_999, "a piece is bare of the carriage return at its end"


# --- what tocsin writes itself ------------------------------------------------------------------------------------------


def test_what_tocsin_writes_itself_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("app.log", "tocsin.db", "tocsin.db-wal", "state/query/offsets/0", "state/spark.log", "stateful.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    own = (str(tmp_path / "tocsin.db"), str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for wanted in (".", "*", "**", str(tmp_path)):
        names = {os.path.relpath(path) for path in find([wanted], own).files}
        assert names == {"app.log", "stateful.log"}
    (error,) = find(["state/spark.log"], own).errors
    assert "tocsin writes this file itself" in str(error)
    source = FilesSource(["."], excluded=own)
    assert sorted(source.latest(source.initial())["streams"]) == ["app.log", "stateful.log"]


@pytest.mark.timeout(20)
def test_a_device_without_end_that_is_named_is_no_log() -> None:
    with pytest.raises(SourceError, match="is not text"):
        list(read_path("/dev/zero"))


@pytest.mark.parametrize("head", [b"BZh91AY&SY\xd7\x0c", b"\x28\xb5\x2f\xfd\x24\x15", b"\x04\x22\x4d\x18\x64\x40"])
def test_what_is_compressed_under_the_name_of_a_log_is_no_log(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "a.log").write_bytes(head + b"no NUL follows")
    with pytest.raises(SourceError, match="is compressed"):
        list(read_path(str(tmp_path / "a.log")))


def test_a_damaged_first_line_is_no_utf16(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\xff\xfedamaged\nnext\n")
    assert [line.value for line in read_path(str(tmp_path / "a.log")) if isinstance(line, RawLine)][1:] == [b"next"]
