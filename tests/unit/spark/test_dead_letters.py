"""The file of dead letters beside the checkpoint is bounded and private; stamps out of bounds are reported ever more seldom."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.codec import loads
from engine.model.quarantine import DeadLetter, Misdated
from engine.spark import dead_letters
from engine.spark.dead_letters import DeadLetterFile, file_of
from tests.building import at, plan

LETTER = DeadLetter("match", "a.log", 7, 3, 1, 1, "", "ValueError: no", "a line\x1b[31m", at(0))


def test_the_file_is_bounded_and_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "FILE_BYTES", 1000)
    writing, path = DeadLetterFile(plan(), tmp_path, "default"), file_of(tmp_path)
    for number in range(50):
        writing.write([replace(LETTER, offset=number)])
    older = path.with_name(f"{path.name}.1")
    assert {each.name for each in tmp_path.iterdir()} == {path.name, older.name}
    assert max(each.stat().st_size for each in (path, older)) < 1500
    assert {stat.S_IMODE(each.stat().st_mode) for each in (path, older)} == {0o600}
    assert loads(path.read_text().splitlines()[-1], DeadLetter).offset == 49


def test_stamps_out_of_bounds_are_told_when_there_are_ten_times_as_many(tmp_path: Path) -> None:
    job = DeadLetterFile(plan(), tmp_path, "default")
    told = [job.misdated_sentences([Misdated("a.log", 1)]) for _ in range(100)]
    assert [number for number, each in enumerate(told, 1) if each] == [1, 10, 100]
    assert told[9] == [Misdated("a.log", 10).sentence]
