from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from engine.cli.report import lasting, render_incident, wrapped
from engine.model.incidents import Evidence, Incident, RenderedStep
from engine.model.links import Link
from tests.unit.cli.incidents import AT, TOO_LARGE, incident

HOSTILE = "[bold]loud[/bold] \x1b[31mred\x1b[0m \u202eevil\u202c :smile:"


def printed(shown: Incident, width: int = 80, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, no_color=not colour, legacy_windows=False)
    console.print(render_incident(shown, width), soft_wrap=True, end="")
    return out.getvalue()


def section(report: str, name: str) -> str:
    """Return the text of one left-hand word, up to the next."""
    lines = report.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(name))
    end = next((n for n in range(start + 1, len(lines)) if lines[n][:1].strip()), len(lines))
    return "\n".join(line[10:] for line in lines[start:end])


def test_the_report_of_an_incident(golden: Callable[[str, str], None]) -> None:
    golden("incident_report.txt", printed(TOO_LARGE))


def test_links_stand_at_the_end() -> None:
    links = (Link("incident", "https://tocsin.example/incidents/inc-1"), Link("kibana", "https://k/x"))
    report = render_incident(TOO_LARGE, links=links).plain
    assert report.endswith("Page      https://tocsin.example/incidents/inc-1\nLogs      https://k/x\n")


def test_it_reads_from_what_broke_to_what_to_do_to_the_proof() -> None:
    report = printed(TOO_LARGE)
    order = [report.index(word) for word in ("CRITICAL", "When", "Cause", "Fix", "Verify", "Proof", "Explains")]
    assert order == sorted(order)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_only_a_single_long_word_may_be_wider_than_the_terminal(width: int) -> None:
    for line in printed(TOO_LARGE, width).splitlines():
        assert cell_len(line) <= width or " " not in line[10:].strip()


def test_a_command_pasted_from_the_report_is_the_command() -> None:
    command = (
        "kafka-topics.sh --bootstrap-server a:9092 --describe --topic 'two words \" and $x' --under-replicated-partitions " * 3
    )
    step = section(printed(incident(fix=(RenderedStep(do="Look", run=command.strip()),))), "Fix")
    pasted = step.partition("\n")[2].replace("\\\n", " ")
    assert pasted.split() == command.split()


def test_a_long_command_of_powershell_goes_on_behind_its_own_mark() -> None:
    step = RenderedStep(do="Look", run=r"bin\windows\kafka-topics.bat --bootstrap-server a:9092 --describe --topic " + "t" * 60)
    assert " `\n" in section(printed(incident(fix=(step,))), "Fix")


def test_log_text_cannot_format_the_terminal() -> None:
    hostile = Evidence("e", HOSTILE, 1, AT, HOSTILE)
    report = printed(incident(title=HOSTILE, cause=HOSTILE, labels={"topic": HOSTILE}, evidence=(hostile,)), width=200)
    assert "\x1b" not in report
    assert "\u202e" not in report
    assert report.count("[bold]loud[/bold] \\x1b[31mred\\x1b[0m \\u202eevil\\u202c :smile:") == 5


def test_colour_is_used_on_a_terminal_only() -> None:
    assert "\x1b[" in printed(TOO_LARGE, colour=True)
    assert "\x1b[" not in printed(TOO_LARGE)


def test_stack_frames_are_left_out_and_reasons_kept() -> None:
    proof = section(printed(TOO_LARGE, width=200), "Proof")
    assert "connect.log#kafka-connect-2:12" in proof
    assert "RecordTooLargeException: The message is 1125872 bytes" in proof
    assert "WorkerSourceTask.java" not in proof


def test_a_trace_of_frames_only_is_shown_all_the_same() -> None:
    frames = Evidence("e", "x.log", 0, AT, "\tat a.b(C.java:1)\n\tat d.e(F.java:2)")
    assert "at a.b(C.java:1)" in section(printed(incident(evidence=(frames,))), "Proof")


def test_at_most_three_events_are_shown_and_all_are_counted() -> None:
    events = tuple(Evidence(f"e{n}", "x.log", n, AT, f"line {'abcdef'[n]}") for n in range(6))
    report = printed(incident(evidence=events, count=1000))
    assert "x.log:2" in report
    assert "x.log:3" not in report
    assert "1,000 times" in report


def test_an_event_that_differs_in_numbers_only_is_shown_once() -> None:
    events = tuple(Evidence(f"e{n}", "x.log", n, AT, f"12:00:{n:02} refused {n} times") for n in range(1, 4))
    report = printed(incident(evidence=events, count=6))
    assert "x.log:1" in report
    assert "x.log:2" not in report


def test_the_status_is_said_unless_it_is_open() -> None:
    assert "acknowledged" in section(printed(incident(status="acknowledged")), "When")
    resolved = incident(status="resolved", resolved_at=AT + timedelta(hours=2, minutes=4), why="quiet, not confirmed")
    said = " ".join(section(printed(resolved), "When").split())
    assert said == "since 2023-02-03 02:05:02 UTC, resolved 2023-02-03 04:09:02 UTC (2 h 4 min) (quiet, not confirmed)"


def test_lines_without_a_time_are_said_to_have_none() -> None:
    assert "the lines bear no date" in printed(incident(first_seen=None, last_seen=None))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (42, "42 s"), (60, "1 min"), (90, "1 min 30 s"), (7440, "2 h 4 min"), (86400, "1 d"), (180000, "2 d 2 h")],
)
def test_a_span_is_said_in_its_two_largest_units(seconds: int, words: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == words


@given(st.text(), st.integers(min_value=1, max_value=60))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == " ".join(wrapped(text, 10**6)).split()
    assert all(cell_len(line) <= width or " " not in line for line in lines)
