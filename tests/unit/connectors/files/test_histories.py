"""Whatever happens to logs and to the job: each line is read once, or its loss is recorded. See FileHistories."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.connectors.files.file_histories import FileHistories


def histories(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        FileHistories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_each_line_is_read_once_or_its_loss_is_recorded() -> None:
    histories(10, 25)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(0)
def test_each_line_is_read_once_or_its_loss_is_recorded_in_many_histories() -> None:
    histories(400, 80)


def test_a_file_at_rest_may_be_cut_and_deleted_between_two_looks() -> None:
    history = FileHistories()
    history.begin(lines=1, look=True)
    history.batch()
    history.time_passes()
    history.truncate(log="app.log", lines=1)
    history.delete(log="app.log", lines=0, again=False)
    history.batch()
    history.teardown()
