"""Whether a checkpoint and a store belong together: every way in which one of them can be taken away or put back."""

from __future__ import annotations

from typing import Any

import pytest

from engine.spark.alignment import Alignment, Course, decide

LATELY = "2026-01-02T03:04:05.123456+00:00"
TOGETHER = Alignment("q", planned=8, done=8, belongs_to="s1", store="s1", stored=8, written_at=LATELY)


def course(**changes: Any) -> tuple[Course, str]:
    made = {name: getattr(TOGETHER, name) for name in Alignment.__struct_fields__} | changes
    ruling = decide(Alignment(**made), "state.checkpoint", "state.db")
    return ruling.course, ruling.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"planned": 9},  # it ended while a batch was read
        {"planned": 9, "stored": 9},  # and here before Spark knew that the store has it
        {"belongs_to": None},  # an older version did not write it down
        {"query": None, "planned": -1, "done": -1, "belongs_to": None, "stored": -1, "written_at": None},  # the first run
        {"planned": 0, "done": -1, "stored": -1, "written_at": None, "store": "s2"},  # ended in its first batch, store removed
    ],
)
def test_what_belongs_together_goes_on_without_a_word(changes: dict[str, Any]) -> None:
    assert course(**changes) == (Course.GO_ON, "")


@pytest.mark.parametrize("query", [None, "new"])
def test_a_store_without_a_checkpoint_is_begun_anew_and_that_is_said(query: str | None) -> None:
    way, said = course(query=query, planned=-1, done=-1, belongs_to=None, stored=-1)
    assert way is Course.GO_ON
    assert "there is no checkpoint state.checkpoint for the incident store state.db" in said
    assert "2026-01-02T03:04:05Z" in said


@pytest.mark.parametrize("changes", [{"store": "s2"}, {"store": "s2", "stored": -1}, {"belongs_to": None, "stored": -1}])
def test_another_store_is_refused(changes: dict[str, Any]) -> None:
    way, said = course(**changes)
    assert way is Course.REFUSE
    assert said.startswith("the checkpoint state.checkpoint belongs to another incident store than state.db")
    assert "mv state.checkpoint state.checkpoint.old" in said


@pytest.mark.parametrize(("stored", "lacks"), [(5, "batches 6 to 8"), (-1, "batches 0 to 8")])
def test_a_store_that_is_older_is_refused_with_the_time_to_read_from(stored: int, lacks: str) -> None:
    way, said = course(stored=stored)
    assert way is Course.REFUSE
    assert lacks in said
    assert "`start: 2026-01-02T03:04:05Z`" in said


def test_a_checkpoint_that_is_older_reads_again() -> None:
    way, said = course(planned=5, done=5)
    assert way is Course.READ_AGAIN
    assert "the input of batches 6 to 8 is read again" in said
