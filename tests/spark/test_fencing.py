"""A store and a checkpoint that are taken away, put back or changed with others, while a job runs and between two runs."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.dsl import builtin_rules, load
from engine.errors import FenceError, StoreLost
from engine.incident import NOT_JUDGED
from engine.model.rules import Plan
from engine.spark.job import NO_BATCH, BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.spark.finals import finals
from tests.spark.test_job import LINE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GREETING = LINE.replace("severity: info", "severity: high") + "runbook: {{cause: Somebody came., impact: None.}}\n"


class Site:
    """A folder with logs, rules, a store and a checkpoint, on which jobs follow each other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self.folder = spark, folder
        self.logs, self.rules = folder / "logs", folder / "rules"
        self.db, self.checkpoint = folder / "state.db", folder / "state.checkpoint"
        self.logs.mkdir()
        self.rules.mkdir()
        self.said: list[str] = []
        self.batches: list[int] = []
        self.rule("begun")

    def rule(self, id: str) -> None:
        (self.rules / f"{id}.yml").write_text(GREETING.format(id=id))

    def plan(self) -> Plan:
        return load([self.rules, builtin_rules() / "formats"])

    def write(self, second: int, text: str) -> None:
        with (self.logs / "a.log").open("a") as log:
            log.write(f"[2024-01-01 10:00:{second:02},000] INFO {text}\n")

    def run(self, on_batch: Callable[[BatchReport], None] = lambda report: None, **how: Any) -> list[Any]:
        """Run a bounded job to its end, or another one; return the incidents then."""
        self.said, self.batches = [], []

        def took(report: BatchReport) -> None:
            self.said += report.messages
            self.batches += [] if report.batch == NO_BATCH else [report.batch]
            on_batch(report)

        store = Store.open(f"sqlite:///{self.db}")
        bounded = how.pop("bounded", True)
        settings = {"paths": [str(self.logs)], "final": bounded, "start": "earliest"}
        source = SourceSpec("logs", "connectors.files:open_source", settings, "default")
        try:
            run(Job([source], self.plan(), store, self.checkpoint, bounded, 0.2, on_batch=took, **how), self._spark)
            return finals(store.incidents())
        finally:
            store.close()

    def copied(self, name: str, *paths: Path) -> Path:
        kept = self.folder / name
        kept.mkdir()
        for path in paths:
            shutil.copytree(path, kept / path.name) if path.is_dir() else shutil.copy(path, kept)
        return kept

    def put_back(self, kept: Path) -> None:
        for path in kept.iterdir():
            there = self.folder / path.name
            if path.is_dir():
                shutil.rmtree(there)
                shutil.copytree(path, there)
            else:
                shutil.copy(path, there)


@pytest.fixture
def site(spark: SparkSession, tmp_path: Path) -> Site:
    made = Site(spark, tmp_path)
    made.write(0, "begun x at 1")
    return made


def test_a_checkpoint_that_is_older_than_the_store_ends_where_it_would_have_without(site: Site) -> None:
    site.run()
    kept = site.copied("kept", site.checkpoint)
    for second in (10, 20):
        site.write(second, f"begun y at {second}")
        before = site.run()
    site.put_back(kept)
    assert site.run() == before
    assert "state.checkpoint is older than the incident store" in site.said[0]
    assert site.run() == before
    assert site.said == []


def test_a_store_that_is_older_than_the_checkpoint_is_refused_and_both_together_go_on(site: Site) -> None:
    site.run()
    kept, both = site.copied("store", site.db), site.copied("both", site.db, site.checkpoint)
    site.write(10, "begun y at 2")
    after = site.run()
    site.put_back(kept)
    with pytest.raises(
        FenceError, match=r"state\.db is older than the checkpoint .*: the findings of batches 1 to 1 are not in it"
    ):
        site.run()
    site.put_back(both)
    assert site.run() == after
    assert site.said == []


def test_a_store_that_is_removed_under_a_live_job_ends_it_and_nothing_is_lost(site: Site) -> None:
    def remove(report: BatchReport) -> None:
        if report.incidents:
            site.db.unlink()

    with pytest.raises(StoreLost, match=r"state\.db: the incident store was removed while it was in use"):
        site.run(remove, bounded=False)
    assert not site.db.exists(), "an empty one would hide that it is gone"


@pytest.mark.parametrize("what", ["query", "."])
def test_a_checkpoint_that_is_removed_under_a_live_job_is_one_sentence(site: Site, what: str) -> None:
    def remove(report: BatchReport) -> None:
        if report.incidents:
            shutil.rmtree(site.checkpoint / what, ignore_errors=True)

    with pytest.raises(FenceError, match=r"state\.checkpoint was removed or replaced while the job was running; start again"):
        site.run(remove, bounded=False)
    shutil.rmtree(site.checkpoint, ignore_errors=True)
    assert len(site.run()) == 1
    assert "there is no checkpoint" in site.said[0]


def test_two_jobs_do_not_run_on_one_checkpoint(site: Site) -> None:
    refused: list[str] = []

    def another(report: BatchReport) -> None:
        if report.batch != NO_BATCH and not refused:
            with pytest.raises(FenceError, match="is in use by another job") as error:
                site.run()
            refused.append(str(error.value))

    site.run(another)
    assert refused


def test_a_rule_that_is_removed_ends_its_incidents_while_the_job_runs_and_between_two_runs(site: Site) -> None:
    site.rule("done")
    site.write(5, "done x at 1")
    stop = threading.Event()

    def ended(report: BatchReport) -> None:
        if any(NOT_JUDGED in said for said in report.messages):
            stop.set()

    def renewed() -> Plan | None:
        if len(site.batches) < 2 or not (site.rules / "done.yml").exists():
            return None
        (site.rules / "done.yml").unlink()
        return site.plan()

    site.run(ended, bounded=False, stop=stop, renewed=renewed)
    (said,) = [said for said in site.said if NOT_JUDGED in said]
    assert "(done) is resolved: its rule `done` was removed" in said
    site.rule("other")
    (site.rules / "begun.yml").unlink()
    site.run()
    of_rules = [said for said in site.said if "the machine is too busy" not in said]
    assert [said.partition(" is ")[2] for said in of_rules] == [f"resolved: its rule `begun` was removed: {NOT_JUDGED}"]
    site.run()
    assert site.said == []


def test_the_lock_of_a_store_does_not_outlive_its_job(site: Site) -> None:
    site.run()
    with sqlite3.connect(site.db) as connection:
        assert connection.execute("SELECT count(*) FROM meta WHERE name = 'store'").fetchone() == (1,)
    assert site.run() != []
