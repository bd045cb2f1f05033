"""Which failures of a query pass by themselves, by what Spark says of them."""

import pytest

from engine.spark.job import _passing

AWAY = """[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure: Traceback (most recent call last):
  File "engine/spark/datasource.py", line 1, in read
engine.errors.SourceAway: no broker of k1:9092 answers: why; check the address
	at org.apache.spark"""
BUSY = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
DENIED = AWAY.replace("SourceAway", "SourceDenied")


@pytest.mark.parametrize("bounded", [True, False])
def test_a_busy_machine_passes_in_any_run_and_a_refusal_in_none(bounded: bool) -> None:
    assert _passing(BUSY, bounded) == "the machine is too busy to start Python within the time that Spark gives it"
    assert _passing(DENIED, bounded) is None


def test_a_source_that_is_away_passes_in_a_run_without_end_only() -> None:
    assert _passing(AWAY, bounded=False) == "no broker of k1:9092 answers: why; check the address"
    assert _passing(AWAY, bounded=True) is None
