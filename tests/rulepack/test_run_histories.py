"""Whatever happens to logs, clocks and the job: `run` finds what `scan` finds in all that was not lost. See RunHistories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.rulepack.played_job import MOMENTS, Killed
from tests.rulepack.run_histories import EVENTS, RunHistories

pytestmark = [pytest.mark.slow, pytest.mark.timeout(0)]


def histories(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        RunHistories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_run_is_scan_in_random_histories() -> None:
    histories(10, 25)


@pytest.mark.long
def test_run_is_scan_in_many_random_histories() -> None:
    histories(200, 50)


def rules(history: RunHistories) -> set[str]:
    return {incident.rule for incident in history.scanned()}


def begun() -> RunHistories:
    history = RunHistories()
    history.begin(lines=0, look=True, seed=0)
    return history


def test_a_silence_that_a_run_told_of_stays_when_a_run_that_ends_reads_what_was_printed_since() -> None:
    history = begun()
    history.time_goes_on(silent="other.log", rounds=5, look=True)
    history.time_goes_on(silent="", rounds=1, look=True)
    history.teardown()
    assert rules(history) == {"broker-silent"}


def test_what_histories_print_is_found_whatever_moment_it_is_killed_at() -> None:
    history = begun()
    for number, text in enumerate(EVENTS * len(MOMENTS)):
        history.writers["app.log"].write(history.event("app.log", text) + "\n")
        history.plan(max_lines=3)
        history.kill_while_reading(had_read=True, moment=MOMENTS[number % len(MOMENTS)])
        history.read()
    history.teardown()
    wanted = {"broker-not-enough-replicas", "broker-record-too-large", "connect-errors-tolerated"}
    assert rules(history) >= wanted


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_batch_that_is_killed_leaves_nothing_but_what_spark_leaves(moment: str) -> None:
    history = begun()
    history.append("app.log", 3)
    history.plan(max_lines=None)
    before, job = history.job.store.batches(), history.job
    with pytest.raises(Killed):
        job.do(killed_at=moment)
    assert job.store.batches() - before == (moment == "in the store")
    assert job.planned is not None
    job.restart()
    job.do()
    assert (job.store.batches() - before, job.planned) == (1, None)
    job.kill()


def test_a_line_that_the_job_leaves_out_or_reads_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    history = begun()
    for _ in range(4):
        history.writers["app.log"].write(history.event("app.log", EVENTS[5]) + "\n")
    monkeypatch.setattr(history.job, "_judged", lambda rows, state: [])
    history.batch()
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        history.teardown()
