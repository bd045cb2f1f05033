"""A checkpoint that is reached through Hadoop's file systems only."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import FenceError, TocsinError
from engine.spark.checkpoints import HadoopCheckpoint
from engine.spark.job import BatchReport, Job, run
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import STORIES, finals, references
from tests.spark.test_job import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORY = STORIES[0]


def test_files_are_written_read_listed_and_removed_through_hadoop(spark: SparkSession, tmp_path: Path) -> None:
    checkpoint = HadoopCheckpoint(spark, f"file://{tmp_path}/state/")
    assert (checkpoint.location, checkpoint.text("a"), checkpoint.names("query")) == (f"file://{tmp_path}/state", None, [])
    query = checkpoint.within("query")
    query.write("offsets/7", "seven, sieben, 일곱")
    query.write("offsets/7", "일곱")
    assert (tmp_path / "state/query/offsets/7").read_text() == query.text("offsets/7") == "일곱"
    assert query.names("offsets") == ["7"]
    query.remove("offsets/7")
    query.remove("offsets/7")
    assert query.text("offsets/7") is None
    checkpoint.remove("query")
    assert not (tmp_path / "state/query").exists()


def test_a_file_system_without_its_jars_is_one_sentence(spark: SparkSession) -> None:
    with pytest.raises(
        TocsinError, match=r"^the checkpoint s3a://bucket/t cannot be reached: .*S3AFileSystem not found.*cluster\.md"
    ):
        HadoopCheckpoint(spark, "s3a://bucket/t").text("store.json")


def _took(read: list[int], report: BatchReport) -> None:
    read.append(report.lines)


def test_a_job_goes_on_from_a_checkpoint_elsewhere_in_whatever_folder_it_is_started(
    spark: SparkSession, tmp_path: Path
) -> None:
    checkpoint = HadoopCheckpoint(spark, f"file://{tmp_path}/elsewhere")
    store, other = (Store.open(f"sqlite:///{tmp_path}/{name}.db") for name in ("store", "other"))
    lines: dict[str, list[int]] = {"first": [], "second": []}
    for folder, read in lines.items():
        took = partial(_took, read)
        run(Job([files(STORY)], plan(), store, tmp_path / folder, True, max_lines=20, on_batch=took, files=checkpoint), spark)
    assert (len(lines["first"]) > 1, sum(lines["second"])) == (True, 0)
    assert finals(store.incidents()) == references([STORY])
    assert not (tmp_path / "first" / "query").exists()
    with pytest.raises(FenceError, match=f"the checkpoint file://{tmp_path}/elsewhere belongs to another incident store"):
        run(Job([files(STORY)], plan(), other, tmp_path / "third", True, files=checkpoint), spark)
    store.close()
    other.close()
