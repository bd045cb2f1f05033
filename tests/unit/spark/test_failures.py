"""Which failures of a query pass by themselves, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import SourceError
from engine.spark.failures import failed_task, job_error, transient_cause

AWAY = """[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure: Traceback (most recent call last):
  File "engine/spark/datasource.py", line 1, in read
engine.errors.SourceAway: no broker of k1:9092 answers: why; check the address
	at org.apache.spark"""
BUSY = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
DENIED = AWAY.replace("SourceAway", "SourceDenied")

ABORTED = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function. Return Message: Traceback \
(most recent call last):
  File "clientserver.py", line 1, in _call_proxy
py4j.protocol.Py4JJavaError: An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: \
Lost task 0.3 in stage 3.0 (TID 9) (node-b executor 1): {why}
	at org.apache.spark.scheduler"""


@pytest.mark.parametrize("bounded", [True, False])
def test_a_busy_machine_passes_in_any_run_and_a_refusal_in_none(bounded: bool) -> None:
    assert transient_cause(BUSY, bounded) == "the machine is too busy to start Python within the time that Spark gives it"
    assert transient_cause(DENIED, bounded) is None


def test_a_source_that_is_away_passes_in_a_run_without_end_only() -> None:
    assert transient_cause(AWAY, bounded=False) == "no broker of k1:9092 answers: why; check the address"
    assert transient_cause(AWAY, bounded=True) is None


def test_the_cause_is_named_with_the_executor_and_not_the_call_that_it_came_through(tmp_path: Path) -> None:
    missing = ABORTED.format(why='java.io.IOException: Cannot run program "env/bin/python": No such file or directory')
    assert failed_task(missing) == (
        "executor 1 on node-b",
        'java.io.IOException: Cannot run program "env/bin/python": No such file or directory',
    )
    assert str(job_error(missing, tmp_path, tmp_path / "spark.log")) == (
        'the Spark job failed: executor 1 on node-b: java.io.IOException: Cannot run program "env/bin/python": No such file or'
        f" directory (see {tmp_path}/spark.log)"
    )
    traced = ABORTED.format(
        why="org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        "  File \"worker.py\", line 1, in main\nModuleNotFoundError: No module named 'engine'"
    )
    assert failed_task(traced) == ("executor 1 on node-b", "ModuleNotFoundError: No module named 'engine'")


def test_a_full_disk_is_told_with_its_machine(tmp_path: Path) -> None:
    full = ABORTED.format(why="java.io.IOException: No space left on device")
    assert str(job_error(full, tmp_path, tmp_path)).startswith(
        "executor 1 on node-b cannot write to its disk: No space left on device; mend that"
    )
    here = full.replace("node-b executor 1", "localhost executor driver")
    assert "the job cannot write to /" in str(job_error(here, tmp_path, tmp_path))


def test_an_error_of_tocsin_in_a_worker_is_told_as_it_is(tmp_path: Path) -> None:
    error = job_error(DENIED, tmp_path, tmp_path)
    assert isinstance(error, SourceError)
    assert str(error) == "no broker of k1:9092 answers: why; check the address"
