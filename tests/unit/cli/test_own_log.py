"""The log of a command that runs for long: sentences, or one JSON object a line for everything that is written there."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.own_log import ALIVE_EVERY_S, IdleNotice, LogFormat, LogLevel, report_defect, say, saying, use_log_format


@pytest.fixture(autouse=True)
def text_again() -> Iterator[None]:
    yield
    use_log_format(LogFormat.TEXT)


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_sentence_is_a_line_of_text_or_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    saying("run")("Spark is up")
    assert capsys.readouterr().err == "tocsin: Spark is up\n"
    use_log_format(LogFormat.JSON)
    say("batch 3: 2 lines", "tocsin.run", LogLevel.WARNING, {"batch": 3, "path": Path("/a")})
    (line,) = written(capsys)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "tocsin.run",
        "message": "batch 3: 2 lines",
        "fields": {"batch": 3, "path": "/a"},
    }


def test_what_packages_log_and_warn_of_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    use_log_format(use_log_format(LogFormat.JSON))
    logging.getLogger("tocsin.kafka").warning("no broker of %s", "a:9092")
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("failed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    broker, failure, warning = written(capsys)
    assert (broker["level"], broker["logger"], broker["message"]) == ("warning", "tocsin.kafka", "no broker of a:9092")
    assert (failure["level"], "ValueError: bad" in failure["fields"]["exception"]) == ("error", True)
    assert warning["logger"] == "py.warnings"


@pytest.mark.parametrize("command", ["run", "job", "notify", "serve"])
def test_a_failure_that_ends_a_command_is_an_object_for_each_mistake(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "tocsin.yml"
    config.write_text("sources:\n  - {type: files, pathss: [a.log]}\nretentio: 3d\n")
    assert main([command, "-c", str(config), "--log-format", "json"]) == 2
    lines = written(capsys)
    assert len(lines) > 1
    assert {line["fields"]["path"] for line in lines} == {str(config)}
    assert all(line["level"] == "error" and line["fields"]["line"] for line in lines)


def test_the_format_is_taken_from_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_LOG_FORMAT", "json")
    assert main(["serve", "-c", str(tmp_path / "none.yml")]) == 2
    (line,) = written(capsys)
    assert "none.yml" in line["message"]


def test_a_defect_has_its_traceback_in_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    use_log_format(LogFormat.JSON)
    report_defect("Traceback ...\n", "tocsin: a defect")
    (line,) = written(capsys)
    assert (line["message"], line["fields"]) == ("tocsin: a defect", {"exception": "Traceback ...\n"})


def test_a_job_without_input_says_now_and_then_that_it_is_at_work() -> None:
    now_s = [0.0]
    notice = IdleNotice(lambda: now_s[0])
    assert notice.sentence(0) == ""
    now_s[0] = ALIVE_EVERY_S
    assert notice.sentence(0) == "at work; no line for 10 min (2 batches without one)"
    now_s[0] += ALIVE_EVERY_S - 1
    assert notice.sentence(0) == ""
    assert notice.sentence(5) == ""
    now_s[0] += ALIVE_EVERY_S
    assert notice.sentence(0) == "at work; no line for 10 min (1 batch without one)"


class Pieces(io.StringIO):
    """Records each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return super().write(text)


@pytest.mark.parametrize("format", LogFormat)
def test_a_line_and_its_end_are_one_write_so_threads_do_not_join_lines(
    format: LogFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = Pieces()
    monkeypatch.setattr(sys, "stderr", pieces)
    use_log_format(format)
    say("batch 3")
    report_defect("Traceback\n", "a defect")
    assert [text.count("\n") > 0 and text.endswith("\n") for text in pieces.writes] == [True, True]


def test_a_record_that_cannot_be_written_does_not_end_the_thread_that_logs_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_log_format(LogFormat.JSON)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    (handler,) = (handler for handler in logging.getLogger().handlers if type(handler).__name__ == "_JsonHandler")
    handler.handle(logging.LogRecord("tocsin.kafka", logging.WARNING, __file__, 1, "no broker of %s and %s", ("a:9092",), None))
    assert "Logging error" in capsys.readouterr().err
