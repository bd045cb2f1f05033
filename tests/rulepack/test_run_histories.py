"""Whatever happens to logs, clocks and the job: `run` finds what `scan` finds in all that was not lost. See RunHistories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.rulepack.run_histories import RunHistories

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
    histories(200, 60)
