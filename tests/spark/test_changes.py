"""A checkpoint outlives changes of the configuration: other rules, sources that come, go, or are called otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.dsl import Override, builtin_rules, load
from engine.model.rules import Plan
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import STORIES, finals, labels, references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT, BROKER = (next(folder for folder in STORIES if folder.name[0] == number) for number in "13")
TIMEOUT = "producer-metadata-timeout"


def files(folder: Path, bounded: bool) -> SourceSpec:
    settings = {"paths": [str(folder)], "labels": labels(folder.name), "final": bounded, "start": "earliest"}
    return SourceSpec(folder.name, "connectors.files:open_source", settings, folder.name)


class Installation:
    """A store and a checkpoint that jobs with different configurations follow each other on."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._checkpoint = spark, folder / "checkpoint"
        self.store = Store.open(f"sqlite:///{folder}/tocsin.db")

    def drained(self, sources: Sequence[SourceSpec], rules: Plan) -> int:
        """Run a job to the end of its input; return how many lines it read besides the batch that may come again."""
        reports: list[BatchReport] = []
        stored = self.store.batches()
        run(Job(sources, rules, self.store, self._checkpoint, bounded=True, on_batch=reports.append), self._spark)
        return sum(report.lines for report in reports if report.batch >= stored)

    def watched(self, sources: Sequence[SourceSpec], rules: Plan, done: Callable[[], bool]) -> int:
        """Run a job that never ends by itself until it is `done`; return how many lines it read."""
        reports: list[BatchReport] = []
        stop = threading.Event()

        def look(report: BatchReport) -> None:
            reports.append(report)
            if done():
                stop.set()

        how: dict[str, Any] = {"bounded": False, "trigger_s": 0.2, "on_batch": look, "stop": stop}
        run(Job(sources, rules, self.store, self._checkpoint, **how), self._spark)
        return sum(report.lines for report in reports)

    def finals(self) -> list[Any]:
        return finals(self.store.incidents())

    def rules(self) -> set[str]:
        return {incident.rule for incident in self.store.incidents()}


def test_a_source_that_comes_is_read_from_its_start_and_one_that_goes_leaves_its_incidents(
    spark: SparkSession, tmp_path: Path
) -> None:
    here = Installation(spark, tmp_path)
    broker, connect = files(BROKER, bounded=True), files(CONNECT, bounded=True)
    assert here.drained([broker], plan()) > 0
    assert here.finals() == references([BROKER])
    alone = Installation(spark, tmp_path / "alone").drained([connect], plan())
    assert here.drained([broker, connect], plan()) == alone, "what was read before was read again"
    assert here.finals() == references([BROKER, CONNECT])
    assert here.drained([connect], plan()) == 0
    renamed = replace(connect, name="called otherwise")
    assert here.drained([renamed], plan()) == alone, "another name is another source"
    assert here.finals() == references([BROKER, CONNECT]), "the same lines are the same events"


def test_changed_rules_judge_what_comes_and_what_was_found_stays(spark: SparkSession, tmp_path: Path) -> None:
    here = Installation(spark, tmp_path)
    fewer = load([builtin_rules()], overrides={TIMEOUT: Override(disabled=True)})
    broker, connect = files(BROKER, bounded=True), files(CONNECT, bounded=True)
    here.drained([broker], fewer)
    before = {incident.id for incident in here.store.incidents()}
    assert before
    assert TIMEOUT not in here.rules()
    here.drained([broker, connect], plan())
    assert TIMEOUT not in here.rules(), "lines that were read are not judged anew"
    assert before < {incident.id for incident in here.store.incidents()}
    assert [final for final in here.finals() if final[0][0] == CONNECT.name] == references([CONNECT])


def test_a_store_that_was_filled_once_can_be_watched_live_and_drained_again(spark: SparkSession, tmp_path: Path) -> None:
    here = Installation(spark, tmp_path)
    here.drained([files(BROKER, bounded=True)], plan())
    live = [files(BROKER, bounded=False), files(CONNECT, bounded=False)]
    lines = here.watched(live, plan(), done=lambda: "connect-record-too-large-client" in here.rules())
    assert lines > 0
    assert here.drained([files(BROKER, bounded=True), files(CONNECT, bounded=True)], plan()) == 0
    assert here.finals() == references([BROKER, CONNECT])
