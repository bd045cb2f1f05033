"""A store that another process holds is waited for: the run neither ends nor loses a batch, and says what it waits for."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.spark.job import BatchReport, Job, run
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import finals, references
from tests.spark.test_job import SMALLEST, files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr("engine.store.outage.ANNOUNCE_AFTER_S", 0.2)
    monkeypatch.setattr("engine.store.outage.PAUSE_S", 0.1)
    opened = Store.open(f"sqlite:///{tmp_path}/tocsin.db", busy_s=0.05)
    yield opened
    opened.close()


@pytest.fixture
def other(tmp_path: Path, store: Store) -> Iterator[sqlite3.Connection]:
    """Somebody else's transaction, which no batch can get past."""
    with closing(sqlite3.connect(tmp_path / "tocsin.db", isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_a_run_goes_on_when_the_store_is_free_again(
    spark: SparkSession, store: Store, other: sqlite3.Connection, tmp_path: Path
) -> None:
    sentences: list[str] = []

    def report(of: BatchReport) -> None:
        sentences.extend(of.messages)
        if sentences and other.in_transaction:
            other.execute("COMMIT")

    run(Job([files(SMALLEST)], plan(), store, tmp_path / "checkpoint", bounded=True, on_batch=report), spark)
    assert sentences[0].startswith("waiting for the incident store for ")
    assert "another process is writing" in sentences[0]
    assert sentences[1].startswith("the incident store is back after ")
    assert finals(store.incidents()) == references([SMALLEST])


def test_a_run_that_waits_can_be_stopped_and_the_next_one_does_the_batch(
    spark: SparkSession, store: Store, other: sqlite3.Connection, tmp_path: Path
) -> None:
    stop = threading.Event()
    job = Job([files(SMALLEST)], plan(), store, tmp_path / "checkpoint", True, on_batch=lambda _: stop.set(), stop=stop)
    run(job, spark)
    assert store.batches() == 0
    other.execute("COMMIT")
    run(Job([files(SMALLEST)], plan(), store, tmp_path / "checkpoint", True), spark)
    assert finals(store.incidents()) == references([SMALLEST])
