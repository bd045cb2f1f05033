"""From statuses to lines: what changed, once; a whole picture when asked for; long traces in several lines that fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.connect import statuses
from connectors.connect.statuses import ITSELF, gone, inventory_of, lines_of, with_parts
from tests.unit.parse.reading import events

WORKER = "kafka-connect-2:8083"


def part(state: str = "RUNNING", trace: str = "", **more: Any) -> dict[str, Any]:
    return {**more, "state": state, "worker_id": WORKER, **({"trace": trace} if trace else {})}


def status(name: str, *tasks: dict[str, Any], itself: dict[str, Any] | None = None) -> dict[str, Any]:
    numbered = [{"id": number, **task} for number, task in enumerate(tasks)]
    return {"type": "source", "name": name, "tasks": numbered, "connector": itself or part()}


HEALTHY = status("cdc", part(), part())
FAILED = status("cdc", part("FAILED", "java.lang.Error: x\n\tat a.B.c(B.java:1)"), part())


def documents(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_nothing_is_said_of_what_has_not_changed() -> None:
    assert lines_of([HEALTHY], inventory_of("4.3.1", [HEALTHY]), whole=False) == []


def test_a_connector_is_printed_as_its_status_with_the_tasks_that_have_changed() -> None:
    (document,) = documents(lines_of([FAILED], inventory_of("4.3.1", [HEALTHY]), whole=False))
    assert list(document) == ["name", "connector", "tasks", "type"]
    assert (document["connector"], document["tasks"]) == (FAILED["connector"], FAILED["tasks"][:1])


@pytest.mark.parametrize(
    "change", [{"state": "PAUSED"}, {"worker_id": "other:8083"}, {"state": "FAILED", "trace": "y"}, {"trace": "z"}]
)
def test_state_worker_and_trace_are_changes(change: dict[str, Any]) -> None:
    after = status("cdc", {**part("FAILED", "x"), **change})
    assert lines_of([after], inventory_of("", [status("cdc", part("FAILED", "x"))]), whole=False)


def test_a_whole_picture_has_every_connector_in_order_of_name() -> None:
    every = [status("b", part()), status("a", part())]
    lines = documents(lines_of(every, inventory_of("", every), whole=True))
    assert [(document["name"], len(document["tasks"])) for document in lines] == [("a", 1), ("b", 1)]


def test_the_trace_of_a_connector_that_has_not_changed_is_not_told_again() -> None:
    broken = status("cdc", part(), itself=part("FAILED", "java.lang.Error: x"))
    moved = {**broken, "tasks": [part("UNASSIGNED", id=0)]}
    (document,) = documents(lines_of([moved], inventory_of("", [broken]), whole=False))
    assert document["connector"] == {"state": "FAILED", "worker_id": WORKER}


def test_long_traces_go_into_several_lines_and_each_failure_is_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "MOST_TRACES", 400)
    trace = "java.lang.Error: x" + "\n\tat a.B.c(B.java:1)" * 15
    long = status("cdc", *(part("FAILED", trace) for _ in range(3)), itself=part("FAILED", "java.lang.Error: itself"))
    lines = lines_of([long], None, whole=True)
    assert len(lines) == 3
    failed = [event for line in lines for event in events(line)]
    assert [event.labels.get("task") for event in failed] == [None, "0", "1", "2"]


def test_of_a_trace_that_is_too_long_the_innermost_cause_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statuses, "MOST_TRACES", 200)
    trace = "a.OuterException: y" + "\n\tat a.B.c(B.java:1)" * 99 + "\nCaused by: b.InnerException: why"
    (document,) = documents(lines_of([status("cdc", part("FAILED", trace))], None, whole=True))
    shortened = document["tasks"][0]["trace"]
    assert len(shortened) < 300
    assert shortened.startswith("a.OuterException: y\n")
    assert shortened.endswith("Caused by: b.InnerException: why")
    assert f"{len(trace) - 200} characters left out" in shortened


def test_what_is_gone_is_every_part_a_connector_after_its_tasks() -> None:
    before = inventory_of("", [status("a", part(), part()), status("b", part())])
    after = inventory_of("", [status("a", part())])
    assert gone(before, after) == [("a", "1"), ("b", "0"), ("b", ITSELF)]
    assert gone(None, after) == []
    kept = with_parts(after, [("b", ITSELF)], before)
    assert gone(before, kept) == [("a", "1"), ("b", "0")]
    assert kept.tasks == 1


def test_tasks_are_counted_without_their_connectors() -> None:
    assert inventory_of("", [HEALTHY, status("other")]).tasks == 2
