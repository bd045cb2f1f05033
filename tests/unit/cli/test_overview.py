from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from engine.cli.overview import render_triage
from engine.cli.triage import Stats, Triage
from engine.cli.unknown import UnknownLines
from engine.model.incidents import NotEvaluated, RenderedStep, Symptom
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

STATS = Stats(lines=12_345, events=11_000, matches=7, seconds=0.31)
QUIET = Triage(incidents=(), pending=(), minor=(), unknown=(), blind=(), notes=(), stats=STATS)
SILENT = incident(
    rule="broker-silent",
    title="A broker fell silent",
    pending=True,
    labels={"cluster": "default", "broker": "1"},
    severity="high",
)
FULL = Triage(
    incidents=(TOO_LARGE, incident(severity="medium", title="Something else", fix=(), evidence=(), symptoms=(), references=())),
    pending=(SILENT,),
    minor=(incident(severity="info", title="Two lines of what may become a trouble"),),
    unknown=tuple(UnknownLines(f"Error {'abcdefg'[n]} in <*>", 100 - n, "ERROR", "Error in x") for n in range(7)),
    blind=(NotEvaluated("default", "broker 3", "its silence is not judged: no line at a fixed pace was seen"),),
    notes=("empty.log: is empty",),
    stats=STATS,
)


def test_the_report_of_a_scan(golden: Callable[[str, str], None]) -> None:
    golden("scan_report.txt", render_triage(FULL).plain)


def test_nothing_found_is_one_line() -> None:
    assert render_triage(QUIET).plain == "Nothing found. 12,345 lines read in 0.3 s.\n"


def test_of_incidents_that_differ_in_whom_they_concern_a_few_are_told_in_full() -> None:
    lone = tuple(
        replace(TOO_LARGE, title=f"{topic} is too small", labels={"cluster": "default", "topic": topic}, fix=_steps(topic))
        for topic in [f"orders-{number}" for number in range(60)]
    )
    text = render_triage(replace(QUIET, incidents=(*lone, SILENT))).plain
    assert text.startswith("61 incidents: ")
    assert text.count("\nCause ") == 6
    told = [line for line in text.splitlines() if "critical orders-" in line]
    assert len(told) == 40
    assert told[0].startswith("Alike     critical orders-5 is too small, since ")
    assert "and 15 more; --format json lists them all" in text


def test_of_very_many_kinds_of_incidents_the_worst_are_told_in_full_and_the_others_are_counted() -> None:
    kinds = tuple(incident(severity="high", rule=f"rule-{n}", title=f"Trouble {n} was seen") for n in range(1000))
    text = render_triage(replace(QUIET, incidents=kinds)).plain
    assert text.count("\nCause ") == 100
    assert "More      high Trouble 100 was seen" in text
    assert "and 860 more; --format json lists them all" in text


def test_of_very_many_symptoms_a_few_are_told() -> None:
    many = tuple(Symptom("rule", f"Trouble {n} was seen", 1, {"topic": str(n)}) for n in range(300))
    text = render_triage(replace(QUIET, incidents=(replace(TOO_LARGE, symptoms=many),))).plain
    assert text.count("was seen [rule]") == 20
    assert "and 280 more; --format json lists them" in text


def _steps(topic: str) -> tuple[RenderedStep, ...]:
    return tuple(replace(step, do=f"{step.do} for {topic}") for step in TOO_LARGE.fix)


MINOR = tuple(incident(severity="info", rule=f"rule-{n}", title=f"Trouble {n} was seen") for n in range(5))


def test_what_is_minor_is_told_in_full_where_nothing_worse_is() -> None:
    text = render_triage(replace(QUIET, minor=MINOR)).plain
    assert text.startswith("No incident; 5 minor: no trouble unless there is more of it. 12,345 lines read")
    assert [line for line in text.splitlines() if line.startswith(" INFO ")] == [
        f" INFO  Trouble {n} was seen" for n in range(3)
    ]
    assert text.count("\nCause ") == text.count("\nProof ") == 3
    assert [line.split("[")[1].split("]")[0] for line in text.splitlines() if "[rule-" in line] == ["rule-3", "rule-4"]


@pytest.mark.parametrize("worse", ["incidents", "pending"])
def test_what_is_minor_takes_one_line_beside_what_is_worse(worse: str) -> None:
    text = render_triage(replace(QUIET, minor=MINOR[:1], **{worse: (SILENT,)})).plain
    assert " INFO " not in text
    assert any(line.startswith("Minor     ") and "Trouble 0" in line for line in text.splitlines())


def test_what_is_pending_unknown_and_blind_takes_one_line_each() -> None:
    text = render_triage(FULL, 60).plain
    (pending,) = (line for line in text.splitlines() if line.startswith("Pending"))
    assert "broker-silent" in pending
    assert all(len(line) <= 60 for line in text.splitlines()[-10:])
    assert "and 2 more; --format json lists them all" in text


def test_log_text_in_the_short_lists_is_made_visible() -> None:
    hostile = Triage((), (), (), (UnknownLines("a\x1b[31m\nb", 1, "ERROR", ""),), (), (f"n{AT}\u202e",), STATS)
    text = render_triage(hostile).plain
    assert "a\\x1b[31m b" in text
    assert "\u202e" not in text
