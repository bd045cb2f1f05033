"""A cluster that gives no executors is noticed, and after a while it ends the run."""

from __future__ import annotations

from engine.spark.executors import ENDS_AFTER_S, REPORTED_AFTER_S, ExecutorAbsence, check_absence


def test_no_absence_while_there_are_executors() -> None:
    assert check_absence(None, 1, 0.0) is None
    assert check_absence(ExecutorAbsence(0.0, reported=True), 2, 100.0) is None


def test_an_absence_is_reported_after_a_while_and_ends_the_run_later() -> None:
    begun = check_absence(None, 0, 100.0)
    assert begun == ExecutorAbsence(100.0)
    assert check_absence(begun, 0, 100.0 + REPORTED_AFTER_S - 1) == begun
    reported = check_absence(begun, 0, 100.0 + REPORTED_AFTER_S)
    assert reported == ExecutorAbsence(100.0, reported=True)
    assert check_absence(reported, 0, 100.0 + ENDS_AFTER_S) == ExecutorAbsence(100.0, reported=True, ended=True)
