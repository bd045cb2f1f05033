"""What is said when tocsin's own input fails: a broker goes and comes back, a topic is missing, lines are gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers import held
from tests.servers.broker import Broker
from tests.servers.live import live
from tests.servers.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(900)]


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


@pytest.mark.long
def test_a_broker_that_goes_between_the_plan_of_a_batch_and_its_reading_is_waited_for_as_one_that_went_before(
    spark: SparkSession, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make()
    topics.write(topic, ["one", "two"])
    with live(spark, topics, tmp_path, topic) as job:
        job.until(lambda: job.lines == 2)
        (tmp_path / held.HELD).touch()
        topics.write(topic, ["three"])
        job.until((tmp_path / held.READING).exists)
        broker.stop()
        try:
            (tmp_path / held.HELD).unlink()
            job.until(lambda: job.statuses() == [("ingest-stalled", "open")])
        finally:
            broker.start()
        topics.write(topic, ["four"])
        job.until(lambda: job.lines == 4 and job.statuses() == [("ingest-stalled", "resolved")])
        assert job.heard(f"could not be read and is planned anew: no broker of {broker.address} answers") == 1
        assert job.heard("is readable again after") == 1
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
