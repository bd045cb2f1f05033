"""The job on its machine: what it cannot write to is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import TocsinError
from engine.spark.job import plan_file
from tests.rulepack.playing import plan


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
