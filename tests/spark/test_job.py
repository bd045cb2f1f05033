"""The Spark job gives the final incidents of `replay()`, however its input is cut up."""

from __future__ import annotations

import gzip
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import StoreError
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.spark.finals import HEALTHY, STORIES, finals, labels, plan, references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SMALLEST = next(folder for folder in STORIES if folder.name.startswith("3-"))


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


@pytest.fixture(params=[1, 2], ids=["1-partition", "2-partitions"])
def partitions(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[int]:
    """As many partitions of state, and of input."""
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    spark.conf.set(key, str(request.param))
    yield request.param
    spark.conf.set(key, before)


def interrupted(spark: SparkSession, sources: Sequence[SourceSpec], at: Path, batches: int, **how: Any) -> None:
    """Run a job that fails when its `batches`th batch is in the store, and Spark does not know yet."""
    store = Store.open(f"sqlite:///{at}/tocsin.db")

    def fail(report: BatchReport) -> None:
        if report.batch + 1 >= batches:
            raise StoreError("the power is gone")

    with pytest.raises(StoreError, match="the power is gone"):
        run(Job(sources, plan(), store, at / "checkpoint", bounded=True, on_batch=fail, **how), spark)
    assert store.batches() == batches
    store.close()


@pytest.mark.parametrize(
    ("folders", "max_lines", "batches"),
    [
        pytest.param((*STORIES, *HEALTHY), None, 1, id="everything"),
        pytest.param(STORIES, 7, 6, id="7-lines", marks=pytest.mark.long),
        pytest.param((SMALLEST,), 1, 5, id="1-line"),
    ],
)
def test_a_job_that_is_interrupted_goes_on_to_what_replay_gives(
    spark: SparkSession, tmp_path: Path, partitions: int, folders: Sequence[Path], max_lines: int | None, batches: int
) -> None:
    sources, how = [files(folder) for folder in folders], {"max_lines": max_lines, "parallelism": partitions}
    interrupted(spark, sources, tmp_path, batches, **how)
    found, reports = streamed(spark, sources, tmp_path, **how)
    assert found == references(folders)
    assert [report.batch for report in reports if report.repeated] == [batches - 1]


def test_starting_spark_leaves_ctrl_c_to_the_caller(spark: SparkSession) -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_job_told_to_stop_while_spark_starts_reads_nothing(spark: SparkSession, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert streamed(spark, [files(SMALLEST)], tmp_path, stop=stop) == ([], [])
    assert not (tmp_path / "checkpoint").exists()


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
