"""What stands around a line of evidence, read from the input once more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.dsl import builtin_rules, load_cached
from engine.model.incidents import Evidence, evidence_of
from engine.model.matches import Match
from engine.model.proof import Neighbours
from engine.model.records import RawLine
from engine.model.redaction import Redaction
from engine.model.rules import Plan
from engine.neighbours import EVENTS, LINES_AFTER, LINES_BEFORE, lines_with, neighbours_of, numbers_around
from engine.pipeline import replay
from engine.ports import Chunk
from tests.unit.cli.incidents import AT

ERROR = "WARN [Partition __consumer_offsets-4 broker=1] Shrinking ISR from 1,2 to 1. (kafka.cluster.Partition)"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_cached([builtin_rules()])


def line(second: int, text: str) -> str:
    return f"[2022-10-05 17:{second // 60:02}:{second % 60:02},000] {text}"


def chunk(lines: Iterable[str], source: str = "a.log", number: int = 1) -> Chunk:
    return Chunk(source, 0, "".join(f"{each}\n" for each in lines).encode(), number)


def evidence(number: int, text: str, source: str = "a.log") -> Evidence:
    return Evidence("e1", source, number, AT, text)


def around(chunks: Iterable[Chunk], event: Evidence, plan: Plan) -> Neighbours | None:
    return neighbours_of([event], lines_with(chunks, numbers_around([event])), plan).get("e1")


def test_they_are_five_events_on_each_side_with_their_traces_shortened(plan: Plan) -> None:
    trace = "java.lang.Error\n" + "\n".join(f"\tat x.Y.z{n}(Y.java)" for n in range(6))
    lines = [line(n, f"INFO before {n} (x)") for n in range(7)]
    lines += [line(7, ERROR), *line(8, f"ERROR after (x)\n{trace}").split("\n"), line(9, "INFO last (x)")]
    found = around([chunk(lines)], evidence(8, lines[7]), plan)
    assert found is not None
    assert found.before == tuple(lines[2:7])
    assert found.after == (f"{lines[8]}\njava.lang.Error\n\tat x.Y.z0(Y.java)\n... 5 more lines", lines[-1])


def test_they_are_of_the_same_container_without_its_prefix(plan: Plan) -> None:
    lines = [f"broker-{n % 2 + 1}  | {line(n, f'INFO line {n} (x)')}" for n in range(8)]
    found = around([chunk(lines)], evidence(5, line(4, "INFO line 4 (x)"), "a.log#broker-1"), plan)
    assert found == Neighbours((line(0, "INFO line 0 (x)"), line(2, "INFO line 2 (x)")), (line(6, "INFO line 6 (x)"),))


def test_secrets_of_them_are_not_shown(plan: Plan) -> None:
    lines = [line(0, "INFO password=hunter2 (x)"), line(1, ERROR), line(2, "INFO customer 4711-x (x)")]
    found = around([chunk(lines)], evidence(2, lines[1]), replace(plan, redaction=Redaction(patterns=(r"\d{4}-x",))))
    assert found is not None
    assert "hunter2" not in found.before[0] and "4711" not in found.after[0]


@pytest.mark.parametrize(
    "event",
    [
        evidence(2, line(1, "WARN another line (x)")),
        evidence(9, line(1, ERROR)),
        evidence(0, line(1, ERROR)),
        evidence(2, line(1, ERROR), "b.log"),
        replace(evidence(2, line(1, ERROR)), origin="elasticsearch:a/b"),
    ],
    ids=["rewritten", "shorter", "no number", "another source", "a document"],
)
def test_a_line_that_is_not_where_it_was_has_none(plan: Plan, event: Evidence) -> None:
    assert around([chunk([line(0, "INFO a (x)"), line(1, ERROR), line(2, "INFO b (x)")])], event, plan) is None


def test_only_the_lines_that_are_asked_for_are_kept() -> None:
    chunks = [chunk([str(n) for n in range(first, first + 100)], number=first) for first in range(1, 1001, 100)]
    numbers = numbers_around([evidence(500, "500"), evidence(3, "3", "b.log"), evidence(510, "510", "a.log#broker-1")])
    assert numbers["b.log"][0] == 1
    read = list(lines_with([*chunks, chunk(["other"], "c.log")], numbers))
    assert [each.number for each in read] == list(range(500 - LINES_BEFORE, 510 + LINES_AFTER + 1))
    assert all(each.value == str(each.number).encode() for each in read)


@given(st.lists(st.sampled_from(["INFO a (x)", ERROR, "ERROR b (x)\njava.lang.Error\n\tat x.Y.z(Y.java)"]), max_size=30))
def test_every_match_is_found_again_where_its_evidence_says(plan: Plan, texts: list[str]) -> None:
    lines = [each for n, text in enumerate(texts) for each in line(n, text).split("\n")]
    matches = list[Match]()
    raw = [RawLine("a.log", n, each.encode(), n + 1) for n, each in enumerate(lines)]
    list(replay(raw, plan, observe=lambda _, found: matches.extend(found)))
    events = {match.event_id: evidence_of(match) for match in matches if not match.rule_id.startswith("component:")}
    found = neighbours_of(events.values(), raw, plan)
    assert len(texts) == 1 or found.keys() == events.keys()
    assert all(len(each.before) <= EVENTS and len(each.after) <= EVENTS for each in found.values())
