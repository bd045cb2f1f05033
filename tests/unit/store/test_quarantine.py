"""Dead letters in the store, in the file beside the checkpoint, and as they are listed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from engine.cli.main import main
from engine.codec import loads
from engine.model.quarantine import DeadLetter, Misdated
from engine.spark import dead_letters
from engine.spark.dead_letters import DeadLetterFile, file_of
from engine.store import Store
from engine.store.ledger import KEPT_LETTERS
from engine.store.store import BatchId
from tests.building import at, plan

LETTER = DeadLetter("match", "a.log", 7, 3, 1, 1, "", "ValueError: no", "a line\x1b[31m", at(0))


def test_the_newest_are_kept_and_one_from_the_same_place_is_one(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    many = [replace(LETTER, offset=n, at=at(n)) for n in range(KEPT_LETTERS + 50)]
    for number in (1, 1, 2):  # a batch comes again after a crash
        with store.batch(BatchId("q", number)) as ledger:
            ledger.put_quarantined(many, at(0))
    kept = store.quarantined()
    assert [letter.offset for letter in kept] == list(range(KEPT_LETTERS + 49, 49, -1))
    store.close()


def test_they_are_listed_with_place_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tocsin.yml").write_text("sources: [{type: files, paths: [a.log]}]\nstore: sqlite:///./t.db\n")
    store = Store.open(f"sqlite:///{tmp_path}/t.db")
    command = ["quarantine", "-c", str(tmp_path / "tocsin.yml")]
    assert main(command) == 0
    with store.batch(BatchId("q", 1)) as ledger:
        ledger.put_quarantined([LETTER], at(0))
    store.close()
    assert main(command) == 1
    out = capsys.readouterr().out
    assert out.startswith("1 line of 'a.log' at line 3 in quarantine (match): ValueError: no\n  a line")
    assert "\x1b" not in out
    assert main([*command, "--text"]) == 1
    assert capsys.readouterr().out.startswith("a line")


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
    told = [job.misdated([Misdated("a.log", 1)]) for _ in range(100)]
    assert [number for number, each in enumerate(told, 1) if each] == [1, 10, 100]
    assert told[9] == [Misdated("a.log", 10).sentence]
