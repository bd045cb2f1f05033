"""Runs of occurrences: those closer than the gap are one, whatever the order they come in."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.correlate.aggregate import Occurrence
from engine.correlate.runs import MAX_RUNS, Runs
from engine.correlate.spans import Spans
from tests.building import at

MINUTE = timedelta(minutes=1)
SECONDS = st.lists(st.integers(0, 900), min_size=1, max_size=30)


def occurrence(seconds: float) -> Occurrence:
    return Occurrence(at(seconds), f"e{seconds}", "a.log", {})


@given(SECONDS, st.data())
def test_runs_in_any_order(seconds: list[int], data: st.DataObject) -> None:
    def made(order: list[int]) -> list[tuple[datetime, datetime]]:
        runs: Runs[Occurrence] = Runs(MINUTE)
        for s in order:
            runs.add(occurrence(s))
        return [(first.at, last.at) for first, last in runs]

    assert (
        made(data.draw(st.permutations(seconds)))
        == made(sorted(seconds))
        == list(Spans(MINUTE, [(at(s), at(s)) for s in seconds]))
    )


def test_runs_have_pauses_between_them() -> None:
    runs = Runs(MINUTE, [(occurrence(0), occurrence(30)), (occurrence(100), occurrence(100))])
    assert [(a.at, b.at) for a, b in runs.pauses()] == [(at(30), at(100))]


def test_too_many_runs_join_the_oldest() -> None:
    runs: Runs[Occurrence] = Runs(MINUTE)
    for n in range(MAX_RUNS + 9):
        runs.add(occurrence(n * 100))
    assert len(list(runs)) == MAX_RUNS
    first, last = next(iter(runs))
    assert (first.at, last.at) == (at(0), at(900))
