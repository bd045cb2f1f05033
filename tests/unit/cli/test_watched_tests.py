"""Tests of rules are run again when their files change."""

from __future__ import annotations

import threading
from collections.abc import Container
from pathlib import Path

import pytest

from engine.cli.watched_tests import watch_tests
from engine.errors import UsageError


def test_the_files_that_changed_or_failed_are_tested_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, three = (tmp_path / f"{name}.yml" for name in ("one", "two", "three"))
    for path in (one, two, three):
        path.write_text("a")
    stop, calls = threading.Event(), list[list[str]]()
    steps = iter([("bb", two), ("ccc", three), ("dddd", two)])

    def run(changed: Container[str] | None) -> list[str]:
        calls.append(["all"] if changed is None else [path.stem for path in (one, two, three) if str(path) in changed])
        text, path = next(steps, ("", None))
        if path is None:
            stop.set()
            return []
        path.write_text(text)  # the next change, as an editor saves it
        if len(calls) == 3:
            raise UsageError("a rule is wrong")
        return [str(one)] if len(calls) == 1 else []

    assert watch_tests([tmp_path], run, stop) == 0
    assert calls == [["all"], ["one", "two"], ["three"], ["two", "three"]]
    err = capsys.readouterr().err
    assert "tocsin: a rule is wrong" in err
    assert "looking at 3 rule files" in err


def test_it_ends_with_the_code_of_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "one.yml").write_text("a")
    stop = threading.Event()
    stop.set()
    assert watch_tests([tmp_path], lambda _changed: ["one.yml"], stop) == 1
