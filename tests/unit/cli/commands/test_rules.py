"""`tocsin rules`: what it prints, what it ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.main import main

RULE = """\
id: record-lost
title: "{topic} lost {lost} records"
severity: high
component: client
detection:
  lost: "lost {lost:int} records of {topic}."
  condition: lost
entity: [cluster, topic]
runbook:
  cause: Somebody dropped them.
  impact: They are gone.
  fix:
    - do: Give it twice the room
      where: topic
      set: {retention.bytes: "{= ceil_pow2(lost)}"}
tests:
  - log: |
      [2022-10-05 17:05:39,869] WARN lost 1000 records of orders. (some.Class)
      [2022-10-05 17:05:40,869] WARN lost 12 records of orders. (some.Class)
    fires: {topic: orders, lost: 1000}
    count: 2
    severity: high
    fix: "1024"
  - {log: found 1000 records of orders., silent: true}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "record-lost.yml").write_text(RULE)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["rules", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def change(folder: Path, old: str, new: str) -> None:
    assert old in RULE
    (folder / "record-lost.yml").write_text(RULE.replace(old, new))


def test_list_names_every_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--rules", str(folder))
    assert code == 0
    assert "record-lost  high" in out
    code, out, _ = run(capsys, "list", "--rules", str(folder), "--format", "json")
    assert [(row["id"], row["severity"], row["kind"], row["tests"]) for row in json.loads(out)] == [
        ("record-lost", "high", "signature", 2)
    ]


def test_the_built_in_rules_are_the_default_and_can_be_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shipped = {row["id"] for row in json.loads(run(capsys, "list", "--format", "json")[1])}
    both = json.loads(run(capsys, "list", "--rules", "builtin", "--rules", str(folder), "--format", "json")[1])
    assert {row["id"] for row in both} == shipped | {"record-lost"}


def test_show_prints_the_file_and_what_it_captures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "record-lost", "--rules", str(folder))
    assert code == 0
    assert "captures: lost (int), topic (word)" in out
    assert "cause: Somebody dropped them." in out
    shown = json.loads(run(capsys, "show", "record-lost", "--rules", str(folder), "--format", "json")[1])
    assert shown["captures"] == {"lost": "int", "topic": "word"}
    assert shown["rule"]["entity"] == ["cluster", "topic"]


def test_show_names_the_nearest_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "show", "record-lots", "--rules", str(folder))
    assert code == 2
    assert "did you mean `record-lost`?" in err


def test_lint_is_silent_about_a_good_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lint", "--rules", str(folder)) == (0, "0 errors, 0 warnings\n", "")
    assert run(capsys, "lint", "--rules", str(folder), "--format", "json") == (0, "[]\n", "")


def test_lint_tells_every_finding_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "severity: high\ncomponent", "severity: hgih\ncomponent")
    code, out, _ = run(capsys, "lint", "--rules", str(folder), "--format", "json")
    assert code == 2
    assert json.loads(out) == [
        {
            "code": "TOC204",
            "severity": "error",
            "path": str(folder / "record-lost.yml"),
            "line": 3,
            "column": 11,
            "message": "`severity` is wrong: `hgih` is not one of the allowed words",
            "help": "did you mean `high`?; known: critical, high, info, low, medium",
        }
    ]
    code, out, _ = run(capsys, "lint", "--rules", str(folder))
    assert code == 2
    assert "3 | severity: hgih\n  |           ^^^^\n" in out
    assert "1 error, 0 warnings" in out


def test_lint_ends_with_1_for_advice_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "  - {log: found 1000 records of orders., silent: true}\n", "")
    code, out, _ = run(capsys, "lint", "--rules", str(folder))
    assert code == 1
    assert "warning[TOC602]" in out


def test_tests_pass_with_the_layouts_of_the_built_in_rules(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "test", "--rules", str(folder))
    assert (code, out) == (0, "2 of 2 tests of 1 rule passed\n")


@pytest.mark.parametrize(
    ("old", "new", "expected", "got"),
    [
        ("fires: {topic: orders, lost: 1000}", "fires: {topic: order}", "fires {topic: order}", "fires {topic: orders}"),
        ("fires: {topic: orders, lost: 1000}", "fires: {partition: 3}", "fires {partition: 3}", "fires {partition: (missing)}"),
        ("count: 2", "count: 3", "count 3", "count 2"),
        ("    severity: high\n    fix", "    severity: low\n    fix", "severity low", "severity high"),
        ('fix: "1024"', "cause: too slow", "a cause with: too slow", "the cause: "),
        ('fix: "1024"', 'fix: "2048"', "a fix with: 2048", "the fix: Give it twice the room retention.bytes=1024"),
        ("log: found 1000", "log: lost 1000", "silent", "fires {"),
        (
            '    fires: {topic: orders, lost: 1000}\n    count: 2\n    severity: high\n    fix: "1024"\n',
            "    silent: true\n",
            "silent",
            "fires {",
        ),
        ("WARN lost", "WARN kept", "fires {topic: orders, lost: 1000}", "silent"),
    ],
)
def test_a_failed_test_shows_what_was_expected_and_what_came(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str, got: str
) -> None:
    change(folder, old, new)
    code, out, _ = run(capsys, "test", "record-lost", "--rules", str(folder))
    assert code == 1
    assert f"  - {expected}" in out
    assert f"  + {got}" in out


def test_results_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "count: 2", "count: 3")
    code, out, _ = run(capsys, "test", "--rules", str(folder), "--format", "json")
    assert code == 1
    assert [(row["rule"], row["passed"], row["problems"]) for row in json.loads(out)] == [
        ("record-lost", False, [{"expected": "count 3", "got": "count 2"}]),
        ("record-lost", True, []),
    ]


def test_bad_rules_are_not_tested(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "condition: lost", "condition: lots")
    code, _, err = run(capsys, "test", "--rules", str(folder))
    assert code == 2
    assert "TOC403" in err


def test_a_failing_test_prints_why_its_rule_does_not_fire(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "found 1000 records of orders., silent: true", "lost 12 entries of orders., fires: {topic: orders}")
    code, out, _ = run(capsys, "test", "--rules", str(folder))
    assert code == 1
    assert "record-lost fires on 0 of 1 events; these came closest:" in out
    assert "`records` should follow, but what follows is: entries of orders." in out


COUNTING = """\
id: record-loss-repeated
title: "{topic} loses records again and again"
severity: critical
component: client
correlation: {type: event_count, rules: [record-lost], group-by: [cluster, topic], timespan: 5m, condition: {gte: 3}}
runbook: {cause: Somebody drops them., impact: They are gone., fix: [{do: Look who}]}
tests:
  - {log: found, silent: true}
"""


def test_a_correlation_is_explained_by_its_best_window(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "record-loss-repeated.yml").write_text(COUNTING)
    log = folder / "a.log"
    stamps = ("17:00:00", "17:09:00", "17:11:00")
    log.write_text("".join(f"[2022-10-05 {stamp},000] WARN lost 12 records of orders. (some.Class)\n" for stamp in stamps))
    code, out, _ = run(capsys, "explain", "record-loss-repeated", str(log), "--rules", str(folder))
    assert code == 0
    assert "record-loss-repeated: it never holds" in out
    expected = "topic=orders: at most 2 within 5 min (2022-10-05 17:09:00 UTC to 17:11:00); `count >= 3` needs 1 more"
    assert expected in out
    _, text, _ = run(capsys, "explain", "record-loss-repeated", str(log), "--rules", str(folder), "--format", "json")
    assert any(expected in line for line in json.loads(text)["windows"])
