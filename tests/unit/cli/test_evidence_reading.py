"""The lines around evidence, read again from the files of a configuration."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli import evidence_reading
from engine.cli.evidence_reading import FilesReader
from engine.config import load
from engine.errors import ReaderBusy
from engine.model.incidents import Evidence
from engine.model.proof import Neighbours
from engine.ports import Chunk
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
def reader(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesReader:
    monkeypatch.setattr(evidence_reading, "LISTED_S", 0.0)
    config = tmp_path / "tocsin.yml"
    config.write_text(f"sources:\n  - {{type: files, paths: ['{log.parent}/*.log*']}}\nstore: sqlite:///{tmp_path}/tocsin.db\n")
    return FilesReader(load(config))


AROUND_3 = Neighbours((line(1), line(2)), (line(4), line(5)))


def test_they_are_read_from_the_file_of_the_line(reader: FilesReader, log: Path) -> None:
    assert reader.may_read(evidence(log, 3))
    assert reader.neighbours(evidence(log, 3)) == AROUND_3
    assert reader.neighbours(evidence(f"{log}#broker-1", 3)) == AROUND_3, "a container in it"
    assert reader.neighbours(evidence(f"{log}~2", 3)) == AROUND_3, "a later stream of that name"


@pytest.mark.parametrize("packed", [False, True], ids=["rotated", "rotated and compressed"])
def test_a_file_is_found_after_rotation(reader: FilesReader, log: Path, packed: bool) -> None:
    text = log.read_bytes()
    log.rename(f"{log}.1")
    if packed:
        Path(f"{log}.1.gz").write_bytes(gzip.compress(text))
        os.unlink(f"{log}.1")  # noqa: PTH108
    log.write_text(f"{line(50)}\n{line(51)}\n{line(52)}\n")
    assert reader.neighbours(evidence(log, 3)) == AROUND_3


def test_what_is_gone_or_was_rewritten_has_none(reader: FilesReader, log: Path) -> None:
    log.write_text(f"{line(50)}\n" * 9)
    assert reader.may_read(evidence(log, 3))
    assert reader.neighbours(evidence(log, 3)) is None
    log.unlink()
    assert not reader.may_read(evidence(log, 3))


def test_only_files_of_the_configuration_are_read(reader: FilesReader, log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.log").write_text(log.read_text())
    assert reader.may_read(evidence(log, 3))
    for other in (evidence(tmp_path / "secret.log", 3), evidence(log, 0), evidence(log, 3, "elasticsearch:a/b")):
        assert not reader.may_read(other)
    assert reader.neighbours(evidence(tmp_path / "secret.log", 3)) is None


def test_a_line_deep_in_a_large_file_is_not_searched_for(
    reader: FilesReader, log: Path, monkeypatch: pytest.MonkeyPatch
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
    assert FilesReader(load(config)).neighbours(evidence(log, 3)) == AROUND_3


def test_a_request_does_not_wait_long_for_another_and_what_was_read_is_kept(
    reader: FilesReader, log: Path, monkeypatch: pytest.MonkeyPatch
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
