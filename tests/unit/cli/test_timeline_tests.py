"""Timelines: tests of rules over time, as their authors see them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.correlate import Correlator
from engine.model.incidents import Finding
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress, Tick

OPENED = """\
id: opened
title: Something opened
severity: info
component: any
detection: {opened: "opened {topic} at {n:int}", condition: opened}
entity: [topic]
"""
RULE = """\
id: left-open
title: "{topic} was opened and never closed"
severity: high
component: any
correlation: {type: pair, open: [opened], expect: [closed], group-by: [topic], within: 60s}
runbook: {cause: Nobody closed it., impact: It stays open.}
tests:
  - timeline: |
      at 0s: INFO opened orders at 7
      at 5s in b.log: INFO opened bills at 8
      at 30s in b.log: INFO closed bills
      at 59s: nothing
      at 60s: fires {topic: orders, n: 7, severity: high}
      at 90s: WARN closed orders
        because: somebody saw it
      at 3m: over
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "opened.yml").write_text(OPENED)
    closed = OPENED.replace("opened {topic} at {n:int}", "closed {topic}").replace("opened", "closed")
    (tmp_path / "closed.yml").write_text(closed)
    (tmp_path / "left-open.yml").write_text(RULE)
    return tmp_path


def outcome(folder: Path, capsys: pytest.CaptureFixture[str], old: str = "", new: str = "") -> tuple[int, str]:
    assert old in RULE
    (folder / "left-open.yml").write_text(RULE.replace(old, new) if old else RULE)
    code = main(["rules", "test", "left-open", "--rules", str(folder)])
    return code, "".join(capsys.readouterr())


def test_a_timeline_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(folder, capsys) == (0, "1 of 1 test of 1 rule passed\n")


@pytest.mark.parametrize(
    ("old", "new", "wanted", "got"),
    [
        ("at 59s: nothing", "at 60s: nothing", "at 60s: nothing", "at 60s: fires {topic: orders}"),
        ("topic: orders, n: 7", "topic: bills", "at 60s: fires {topic: bills", "at 60s: fires {topic: orders"),
        ("at 60s: fires", "at 59s: fires", "at 59s: fires {topic", "at 59s: nothing"),
        ("at 3m: over", "at 3m: fires", "at 3m: fires", "at 3m: over"),
        ("WARN closed orders", "WARN closed others", "at 180s: over", "at 180s: fires {topic: orders}"),
    ],
)
def test_a_step_that_does_not_hold_is_shown_with_what_came(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, wanted: str, got: str
) -> None:
    code, out = outcome(folder, capsys, old, new)
    assert code == 1
    assert f"- {wanted.replace('3m', '180s')}" in out
    assert f"+ {got.replace('3m', '180s')}" in out


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("at 59s: nothing", "after 59s: nothing", "12:7", "this is not a step"),
        ("at 59s: nothing", "at soon: nothing", "12:7", "`soon` is not a duration"),
        ("at 59s: nothing", "at 20s: nothing", "12:7", "the step is earlier than the one above it"),
        ("INFO opened orders at 7", "[2024-01-01 00:00:00] opened", "9:7", "no timestamp of its own"),
        ("severity: high}\n      at", "severity high\n      at", "13:7", "the text after `fires`"),
        ("  - timeline: |", "  - silent: true\n    timeline: |", "8:5", "a test with `timeline` takes no `silent`"),
    ],
)
def test_what_is_no_timeline_is_said_where_it_stands(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, place: str, message: str
) -> None:
    code, out = outcome(folder, capsys, old, new)
    assert code == 2
    assert f"left-open.yml:{place}" in out
    assert message in out


class Impatient(Correlator):
    """Takes nothing more once it has said something."""

    def observe(self, item: Match | ActivitySpan | Progress | Tick) -> None:
        if not hasattr(self, "_over"):
            super().observe(item)

    def flush(self) -> list[Finding]:
        self._over = True
        return super().flush()


def test_a_timeline_is_tried_with_each_line_long_after_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.timeline_tests.Correlator", Impatient)
    code, out = outcome(folder, capsys)
    assert code == 1
    assert "- the same end when this line comes last: INFO opened orders at 7\n  + another end" in out
    assert "at 60s" not in out


def test_the_example_of_the_manual_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manual = (Path(__file__).parents[3] / "docs" / "correlations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)
    (pair,) = (block for block in blocks if "type: pair" in block)
    (tests,) = (block for block in blocks if block.startswith("tests:"))
    said = {"begun": "Begun to move {topic}", "done": "Done with {topic}", "failed": "Failed to move {topic}"}
    for name, line in said.items():
        text = OPENED.replace("opened {topic} at {n:int}", line).replace("id: opened", f"id: reassignment-{name}")
        (tmp_path / f"reassignment-{name}.yml").write_text(text)
    head = RULE.partition("correlation:")[0].replace("left-open", "moves")
    runbook = "runbook: {cause: Nobody knows., impact: It is slow.}\n"
    (tmp_path / "moves.yml").write_text(head + pair + runbook + tests)
    assert main(["rules", "test", "moves", "--rules", str(tmp_path)]) == 0, "".join(capsys.readouterr())
