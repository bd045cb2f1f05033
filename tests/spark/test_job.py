"""The Spark job gives the final incidents of `replay()`, however its input is cut up."""

from __future__ import annotations

import gzip
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.spark.finals import HEALTHY, STORIES, finals, labels, plan, references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files(folder: Path) -> SourceSpec:
    settings = {"paths": [str(folder)], "labels": labels(folder.name), "final": True}
    return SourceSpec(folder.name, "connectors.files:open_source", settings, folder.name)


def streamed(spark: SparkSession, sources: Sequence[SourceSpec], at: Path, **how: Any) -> tuple[list[Any], list[BatchReport]]:
    """Run a bounded job; return its final incidents and what its batches reported."""
    store = Store.open(f"sqlite:///{at}/tocsin.db")
    reports: list[BatchReport] = []
    run(Job(sources, plan(), store, at / "checkpoint", bounded=True, on_batch=reports.append, **how), spark)
    found = finals(store.incidents())
    store.close()
    return found, reports


def test_all_samples_in_one_batch_and_nothing_more_the_second_time(spark: SparkSession, tmp_path: Path) -> None:
    sources = [files(folder) for folder in (*STORIES, *HEALTHY)]
    found, reports = streamed(spark, sources, tmp_path)
    assert found == references((*STORIES, *HEALTHY))
    assert {final[0][0] for final in found} == {folder.name for folder in STORIES}
    again, more = streamed(spark, sources, tmp_path)
    assert again == found
    assert sum(report.lines for report in more) == 0
    assert sum(report.lines for report in reports) > 1000


def test_the_stories_in_batches_of_seven_lines(spark: SparkSession, tmp_path: Path) -> None:
    found, reports = streamed(spark, [files(folder) for folder in STORIES], tmp_path, max_lines=7)
    assert found == references(STORIES)
    assert len(reports) > 10


def test_the_stories_read_by_two_tasks(spark: SparkSession, tmp_path: Path) -> None:
    found, _ = streamed(spark, [files(folder) for folder in STORIES], tmp_path, parallelism=2, max_lines=100)
    assert found == references(STORIES)


def test_starting_spark_leaves_ctrl_c_to_the_caller(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_lost_lines_are_reported_and_the_job_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-4])
    (tmp_path / "new.log").write_text("fine\n")
    settings = {"paths": [str(tmp_path / "*.log*")], "final": True}
    source = SourceSpec("logs", "connectors.files:open_source", settings, "default")
    _, reports = streamed(spark, [source], tmp_path / "state")
    assert sum(report.lines for report in reports) == 3
    (said,) = [sentence for report in reports for sentence in report.said]
    assert said.startswith("lines of '")
    assert "damaged or ends early" in said
