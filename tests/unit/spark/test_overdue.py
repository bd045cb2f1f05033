"""A batch is overdue once it has been at work without a pause for as long as it may be."""

from __future__ import annotations

from engine.spark.overdue import AtWork, watched

BOUND_S = 300.0


def after(*looks: tuple[float, bool, int]) -> AtWork | None:
    """Return what is at work after looks of time, whether the query was active, and the last batch done."""
    found = None
    for now_s, active, done in looks:
        found = watched(found, active, done, now_s, BOUND_S)
    return found


def test_a_batch_that_does_not_end_is_overdue_from_the_bound_on() -> None:
    assert after((0, True, 6), (299.9, True, 6)) == AtWork(6, 0)
    assert after((0, True, 6), (300, True, 6)) == AtWork(6, 0, overdue=True)
    assert after((0, True, 6), (300, True, 6), (900, True, 6)) == AtWork(6, 0, overdue=True)


def test_the_first_batch_counts_from_its_first_look() -> None:
    assert after((50, True, -1), (349, True, -1)) == AtWork(-1, 50)


def test_each_batch_that_is_done_starts_anew() -> None:
    assert after((0, True, 6), (200, True, 7), (400, True, 7)) == AtWork(7, 200)


def test_a_query_that_waits_for_input_is_not_at_work_however_long_ago_its_last_batch_was() -> None:
    assert after((0, True, 6), (10, False, 6), (5000, True, 6)) == AtWork(6, 5000)
    assert after((0, True, 6), (5000, False, 6)) is None
