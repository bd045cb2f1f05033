"""A live job over topics of a real broker, in a thread of the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.model.incidents import Incident
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers import held
from tests.servers.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHIN_S = 240  # a first batch on a busy machine


class Live:
    """A live job in a thread: what it says, and what is in its store."""

    def __init__(self, topics: Topics, at: Path, names: list[str], client: str) -> None:
        self.said: list[str] = []
        self.batches = self.lines = 0
        self.store = Store.open(f"sqlite:///{at}/tocsin.db")
        settings = {"bootstrap_servers": topics.address, "options": {"client.id": client}, "gate": str(at)}
        specs = [SourceSpec(name, held.OPENER, {**settings, "topic": name}, "prod") for name in names]
        how = {"bounded": False, "trigger_s": 0.2, "stalled_after_s": 3.0, "on_batch": self._took}
        self.job = Job(specs, plan(), self.store, at / "checkpoint", **how)  # type: ignore[arg-type]
        self.failure: BaseException | None = None

    def run(self, spark: SparkSession) -> None:
        try:
            run(self.job, spark)
        except BaseException as failure:
            self.failure = failure

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert self.failure is None, self.failure
            assert time.monotonic() < deadline, (self.said, self.lines, self.incidents())
            time.sleep(0.05)

    def heard(self, words: str) -> int:
        return sum(words in sentence for sentence in self.said)

    def incidents(self) -> list[Incident]:
        return [incident for incident in self.store.incidents() if incident.component == "tocsin"]

    def statuses(self) -> list[tuple[str, str]]:
        return [(incident.rule, incident.status) for incident in self.incidents()]

    def _took(self, report: BatchReport) -> None:
        self.batches += 1
        self.lines += report.lines
        self.said += report.messages


@contextmanager
def live(spark: SparkSession, topics: Topics, at: Path, *names: str, client: str = "tocsin") -> Iterator[Live]:
    """Run a live job over topics; it is ended with the block."""
    made = Live(topics, at, list(names), client)
    thread = threading.Thread(target=made.run, args=(spark,))
    thread.start()
    try:
        yield made
    finally:
        made.job.stop.set()
        thread.join(WITHIN_S)
        made.store.close()
    assert made.failure is None
