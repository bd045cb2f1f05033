"""A planning that hangs is told, as a batch is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import STORIES, labels
from tests.spark.hanging import OPENER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_source_that_does_not_say_what_there_is_to_read_is_told(spark: SparkSession, tmp_path: Path) -> None:
    pipe, story = tmp_path / "pipe", STORIES[0]
    os.mkfifo(pipe)
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    reports: list[BatchReport] = []

    def took(report: BatchReport) -> None:
        reports.append(report)
        if report.messages and pipe.exists():
            writer = os.open(pipe, os.O_WRONLY)  # whoever reads it is waiting for this
            pipe.unlink()
            os.close(writer)

    settings = {"paths": [str(story)], "labels": labels(story.name), "final": True, "hangs_on": str(pipe)}
    source = SourceSpec("story", OPENER, settings, story.name)
    run(Job([source], plan(), store, tmp_path / "checkpoint", True, overdue_after_s=1, on_batch=took), spark)
    store.close()
    first, *others = reports
    assert first.messages[0].startswith("batch 0 has been planned, a source not saying what there is to read, for 1 s (Spark: ")
    assert sum(report.lines for report in others) > 0
