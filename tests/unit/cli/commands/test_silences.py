"""`tocsin silences`: silences are added, listed and ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(CONFIG)
    return path


def test_a_silence_is_added_listed_and_ended(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-c", str(config)]
    assert main(["silences", "add", *where, "--for", "2h", "--comment", "moving brokers", "component=broker"]) == 0
    id = capsys.readouterr().out.strip()
    assert main(["silences", "list", *where]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{id}  until ")
    assert out.endswith('component="broker"  moving brokers\n')
    assert main(["silences", "list", *where, "--format", "json"]) == 0
    assert [silence["id"] for silence in json.loads(capsys.readouterr().out)] == [id]
    assert main(["silences", "expire", *where, id]) == 0
    assert main(["silences", "list", *where]) == 0
    assert capsys.readouterr().out == ""
    assert main(["silences", "expire", *where, id]) == 2


@pytest.mark.parametrize(("duration", "matcher"), [("soon", "a=b"), ("1h", "nonsense")])
def test_what_is_no_silence_is_refused(config: Path, duration: str, matcher: str) -> None:
    assert main(["silences", "add", "-c", str(config), "--for", duration, matcher]) == 2
