"""A batch is overdue once it has been at work for as long as it may be."""

from __future__ import annotations

from engine.spark.overdue import BatchActivity, check_overdue

BOUND_S = 300.0


def after(*looks: tuple[float, int | None]) -> BatchActivity | None:
    """Return what is at work after looks of time and of the batch that is planned and not done."""
    found = None
    for now_s, batch in looks:
        found = check_overdue(found, batch, now_s, BOUND_S)
    return found


def test_a_batch_that_does_not_end_is_overdue_from_the_bound_on() -> None:
    assert after((0, 7), (299.9, 7)) == BatchActivity(7, 0)
    assert after((0, 7), (300, 7)) == BatchActivity(7, 0, overdue=True)
    assert after((0, 7), (300, 7), (900, 7)) == BatchActivity(7, 0, overdue=True)


def test_the_first_batch_counts_from_its_first_look() -> None:
    assert after((50, 0), (349, 0)) == BatchActivity(0, 50)


def test_each_batch_starts_anew() -> None:
    assert after((0, 7), (200, 8), (400, 8)) == BatchActivity(8, 200)


def test_a_query_that_waits_for_input_is_not_at_work_however_long_ago_its_last_batch_was() -> None:
    assert after((0, 7), (10, None), (5000, 8)) == BatchActivity(8, 5000)
    assert after((0, 7), (5000, None)) is None


def test_a_planning_that_does_not_end_is_overdue_and_many_short_ones_are_not() -> None:
    started = check_overdue(None, 3, 0, BOUND_S, planning="10:00:00")
    assert check_overdue(started, 3, BOUND_S, BOUND_S, planning="10:00:00") == BatchActivity(
        3, 0, overdue=True, planning="10:00:00"
    )
    assert check_overdue(started, 3, BOUND_S, BOUND_S, planning="10:00:10") == BatchActivity(3, BOUND_S, planning="10:00:10")


def test_a_batch_counts_from_the_end_of_its_planning() -> None:
    started = check_overdue(None, 3, 0, BOUND_S, planning="none")
    assert check_overdue(started, 3, BOUND_S, BOUND_S) == BatchActivity(3, BOUND_S)
