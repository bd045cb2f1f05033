"""What is away when a planned batch is read: a run without end plans it anew, and nothing is lost or told twice by that."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import SourceError
from engine.model.records import RawLine
from engine.spark import attempts
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.faltering import OPENER
from tests.spark.finals import STORIES, finals, labels, lines, reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORY = next(folder for folder in STORIES if folder.name[0] == "1")


class Faltering:
    """A job over a story that cannot be read the first `failures` times, and what it says."""

    def __init__(self, folder: Path, failures: int, bounded: bool) -> None:
        (folder / "failures").write_text(str(failures))
        more = {"failures": str(folder / "failures"), "final": bounded, "start": "earliest"}
        settings = {"paths": [str(STORY)], "labels": labels(STORY.name), **more}
        self.store = Store.open(f"sqlite:///{folder}/tocsin.db")
        self.said: list[str] = []
        self.lines = 0
        self.stop = threading.Event()
        source = SourceSpec("story", OPENER, settings, STORY.name)
        how = {"trigger_s": 0.2, "on_batch": self._took, "stop": self.stop, "max_lines": 200}
        self.job = Job([source], plan(), self.store, folder / "checkpoint", bounded, **how)  # type: ignore[arg-type]

    def _took(self, report: BatchReport) -> None:
        self.lines += report.lines
        self.said += report.messages
        if not self.job.bounded and self.lines == LINES:
            self.stop.set()


LINES = sum(isinstance(line, RawLine) for line in lines(STORY, STORY.name))


def test_a_run_without_end_plans_anew_what_could_not_be_read_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    away = Faltering(tmp_path, failures=2, bounded=False)
    run(away.job, spark)
    assert away.lines == LINES
    assert len([said for said in away.said if said == "batch 0 could not be read and is planned anew: the disk is away"]) == 2
    away.store.close()


def test_what_is_never_read_although_it_can_be_looked_at_ends_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "TRIES", 3)
    away = Faltering(tmp_path, failures=99, bounded=False)
    with pytest.raises(SourceError, match=r"the disk is away \(tried 3 times\)"):
        run(away.job, spark)
    assert (tmp_path / "failures").read_text() == "96"
    away.store.close()


def test_a_run_that_ends_does_not_wait_and_the_next_one_reads_everything(spark: SparkSession, tmp_path: Path) -> None:
    away = Faltering(tmp_path, failures=1, bounded=True)
    with pytest.raises(SourceError, match=r"^the disk is away$"):
        run(away.job, spark)
    run(away.job, spark)
    assert away.lines == LINES
    assert finals(away.store.incidents()) == reference(STORY)
    away.store.close()
