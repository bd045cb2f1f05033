"""The job on its machine: what it cannot write to is named, and which failures of a query pass by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import TocsinError
from engine.spark.job import _transient_cause, plan_file
from tests.rulepack.playing import plan

AWAY = """[STREAM_FAILED] Query terminated with exception: Job aborted due to stage failure: Traceback (most recent call last):
  File "engine/spark/datasource.py", line 1, in read
engine.errors.SourceAway: no broker of k1:9092 answers: why; check the address
	at org.apache.spark"""
BUSY = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
DENIED = AWAY.replace("SourceAway", "SourceDenied")


def test_a_checkpoint_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(TocsinError, match=r"^the job cannot write to .*/taken/checkpoint: Not a directory; mend that"):
        plan_file(plan(), tmp_path / "taken" / "checkpoint")


def test_a_disk_that_is_full_leaves_no_half_of_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str, **how: str) -> int:
        path.write_bytes(text[:9].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(TocsinError, match="No space left on device"):
        plan_file(plan(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bounded", [True, False])
def test_a_busy_machine_passes_in_any_run_and_a_refusal_in_none(bounded: bool) -> None:
    assert _transient_cause(BUSY, bounded) == "the machine is too busy to start Python within the time that Spark gives it"
    assert _transient_cause(DENIED, bounded) is None


def test_a_source_that_is_away_passes_in_a_run_without_end_only() -> None:
    assert _transient_cause(AWAY, bounded=False) == "no broker of k1:9092 answers: why; check the address"
    assert _transient_cause(AWAY, bounded=True) is None
