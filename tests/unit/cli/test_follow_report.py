"""`tocsin scan --follow` as its user runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli.main import application
from tests.unit.cli.test_following import RULE


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "greeted.yml").write_text(RULE)
    return folder


@pytest.mark.slow
def test_it_tells_what_comes_until_ctrl_c_which_reports_what_was_found(tmp_path: Path, rules: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("[2024-01-05 12:00:00,000] INFO hello Ann (a.B)\n")
    command = [sys.executable, "-m", "engine.cli.main", "scan", "-f", str(log), "--rules", str(rules), "--format", "json"]
    root = Path(__file__).parents[3]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=root, **pipes) as process:  # type: ignore[call-overload]
        assert json.loads(process.stdout.readline())["incident"]["title"] == "Ann said hello"
        with log.open("a") as file:
            file.write("[2024-01-05 12:00:01,000] INFO hello Bob (a.B)\n")
        change = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (change["reason"], change["incident"]["labels"]["name"]) == ("opened", "Bob")
    assert (process.returncode, "2 lines, 2 incidents" in err, "Traceback" in err) == (130, True, False)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-"], "--follow takes files"),
        (["a.log", "--since", "2h"], "it does not take --since"),
        (["a.log", "--format", "markdown", "--stats"], "it does not take --stats, --format markdown"),
        (["nothing/here.log"], "nothing/here.log"),
    ],
)
def test_what_a_scan_without_an_end_does_not_take(arguments: list[str], sentence: str, rules: Path) -> None:
    result = CliRunner().invoke(application, ["scan", "--follow", *arguments, "--rules", str(rules)])
    assert result.exception is not None
    assert sentence in str(result.exception)
