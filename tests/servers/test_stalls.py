"""What is said when tocsin's own input fails: a broker goes and comes back, a topic is missing, lines are gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.model.incidents import Incident
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.servers.broker import Broker
from tests.servers.topics import Topics
from tests.spark.finals import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime")]
WITHIN_S = 90


class Live:
    """A live job in a thread: what it says, and what is in its store."""

    def __init__(self, topics: Topics, at: Path, names: list[str], client: str) -> None:
        self.said: list[str] = []
        self.batches = self.lines = 0
        self.store = Store.open(f"sqlite:///{at}/tocsin.db")
        address = {"bootstrap_servers": topics.address, "options": {"client.id": client}}
        specs = [SourceSpec(name, "connectors.kafka:open_source", {**address, "topic": name}, "prod") for name in names]
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
        self.said += report.said


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


def test_a_broker_that_goes_and_comes_back_is_said_once_is_an_incident_meanwhile_and_loses_nothing(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    first, second = topics.make(), topics.make()
    topics.write(first, ["one", "two"])
    with live(spark, topics, tmp_path, first, second) as job:
        job.until(lambda: job.lines == 2)
        broker.stop()
        try:
            job.until(lambda: job.statuses() == [("ingest-stalled", "open")])
        finally:
            broker.start()
        topics.write(second, ["three"])
        topics.write(first, ["four"])
        job.until(lambda: job.lines == 4 and job.heard("is readable again") == 1)
        job.until(lambda: job.statuses() == [("ingest-stalled", "resolved")])
        (incident,) = job.incidents()
        assert incident.labels == {"cluster": "prod", "source": broker.address}
        assert f"no broker of {broker.address} answers" in incident.cause
        assert job.heard(f"cannot read '{broker.address}': no broker of {broker.address} answers") == 1
        assert job.heard("has not been readable for") == 1
        assert len(job.said) == 3
        assert job.lines == 4


def test_a_topic_that_is_missing_is_said_once_the_others_are_read_and_it_is_when_it_appears(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    there, later = topics.make(), "appears-later"
    topics.write(there, ["one"])
    with live(spark, topics, tmp_path, there, later) as job:
        job.until(lambda: job.lines == 1 and job.statuses() == [("ingest-stalled", "open")])
        assert job.heard(f"cannot read 'the topic {later} on {topics.address}': the topic {later} does not exist") == 1
        assert later not in topics.names()
        topics.write(topics.make(name=later), ["first"])
        job.until(lambda: job.lines == 2)
        job.until(lambda: job.statuses() == [("ingest-stalled", "resolved")])
        assert len(job.said) == 3


def test_lines_that_retention_deleted_while_nobody_read_are_an_incident(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make()
    topics.write(topic, ["one", "two"])
    with live(spark, topics, tmp_path, topic) as job:
        job.until(lambda: job.lines == 2)
    topics.write(topic, (str(n) for n in range(10)))
    topics.cut(topic, 0, 7)
    with live(spark, topics, tmp_path, topic, client="later") as job:  # a consumer that has fetched nothing ahead
        job.until(lambda: job.lines == 5)
        job.until(lambda: job.statuses() == [("ingest-lines-lost", "open")])
        (incident,) = job.incidents()
        assert incident.labels["source"] == f"{topic}-0"
        assert "(offsets 2 to 7): the log begins at offset 7 now" in incident.evidence[0].text
        assert job.heard(f"lines of '{topic}-0' are lost (offsets 2 to 7)") == 1
        assert [(loss.lost_from, loss.lost_to) for loss in job.store.losses()] == [(2, 7)]
