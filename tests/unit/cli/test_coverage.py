"""A scan never gives an all-clear for what it did not judge."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from engine.cli.main import main

HEALTHY = b"[2023-02-03 02:05:02,285] INFO nothing to see (x.Y)\n"
STORY = Path("samples/4-silent-broker")
STOP = Path("samples/goodlog/planned-stop")


@pytest.fixture(autouse=True)
def _in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])


def scanned(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Return the exit code of a scan, and its report."""
    code = main(["scan", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_the_first_line_says_what_was_judged(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, STOP)
    assert code == 0
    assert out.startswith("Nothing found in 146 events of 3 brokers. 146 lines read in ")


def test_text_that_is_no_log_is_not_judged(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"hello world\n"))))  # type: ignore[arg-type]
    code, out = scanned(capsys, "-")
    assert code == 3
    assert out.startswith("Not judged: stdin: nothing in it is recognised as a log")
    assert "othing found" not in out


def test_a_file_that_is_no_log_takes_the_all_clear_from_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_bytes(HEALTHY * 3)
    (tmp_path / "strange.log").write_bytes(b"~~ the flux is inverted\n" * 4)
    code, out = scanned(capsys, tmp_path)
    assert code == 3
    assert out.startswith(f"Not judged: {tmp_path}/strange.log: nothing in it is recognised")
    assert "Otherwise nothing found, in 3 events of 1 source." in out


def test_lines_without_a_time_are_not_judged_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_bytes(b"INFO nothing to see (x.Y)\n")
    code, out = scanned(capsys, tmp_path / "server.log")
    assert code == 3
    assert "no date is recognised in its lines, so what depends on time" in out.splitlines()[0]


def test_empty_input_is_no_all_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "server.log").write_bytes(b"")
    code, out = scanned(capsys, tmp_path / "server.log")
    assert (code, out.splitlines()[0].startswith("Not judged: there was no line to read")) == (3, True)


def test_brokers_of_the_roster_that_print_nothing_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, STORY / "broker-1", "--roster", "1,2,3")
    assert code == 3
    assert out.startswith("Not judged: brokers 2 and 3 were never heard")


def test_a_broker_of_the_roster_that_prints_nothing_while_others_do_is_an_incident(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["scan", str(STOP), "--roster", "1,2,3,9", "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert [incident["labels"]["broker"] for incident in document["incidents"]] == ["9"]
    assert document["coverage"] == {"events": 146, "sources": 3, "processes": {"broker": 3}, "gaps": [], "window": ""}


def test_what_cannot_be_read_takes_the_all_clear_from_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = scanned(capsys, STOP, "/not/there")
    assert code == 3
    assert out.startswith("Not judged: /not/there: there is no such file. Otherwise nothing found, in 146 events of 3 brokers.")


def test_what_was_not_judged_stands_below_incidents_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "strange.log").write_bytes(b"~~ the flux is inverted\n")
    code, out = scanned(capsys, STORY, tmp_path / "strange.log")
    assert code == 1
    assert "\nUnjudged  " in out
