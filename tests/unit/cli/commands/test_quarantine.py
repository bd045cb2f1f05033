"""`tocsin quarantine` lists dead letters with place and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.main import main
from engine.model.quarantine import DeadLetter
from engine.store import Store
from engine.store.store import BatchId
from tests.building import at

LETTER = DeadLetter("match", "a.log", 7, 3, 1, 1, "", "ValueError: no", "a line\x1b[31m", at(0))


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
