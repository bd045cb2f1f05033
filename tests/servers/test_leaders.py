"""A topic led by several brokers, of which one is killed and another one is stopped: every line is read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.kafka.source import KafkaSource
from engine.errors import SourceAway
from tests.servers.batches import Reader
from tests.servers.broker import Broker, brokers
from tests.servers.live import live
from tests.servers.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, LINES = 6, 20

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(600)]


@pytest.fixture
def cluster(jars: Path, tmp_path: Path) -> Iterator[list[Broker]]:
    with brokers(jars, tmp_path / "cluster", 3) as running:
        yield running


class Story:
    """What was written so far, some lines to each partition at a time."""

    def __init__(self, cluster: list[Broker]) -> None:
        self.topics = Topics(",".join(broker.address for broker in cluster))
        self.topic = self.topics.make(partitions=PARTITIONS, replicas=2)
        self.lines: list[str] = []

    def goes_on(self) -> int:
        """Write more lines; return how many there are."""
        for partition in range(PARTITIONS):
            some = [f"{partition}:{len(self.lines) + n}" for n in range(LINES)]
            self.topics.write(self.topic, some, partition=partition)
            self.lines += some
        return len(self.lines)

    def heals(self) -> None:
        self.topics.until(lambda: self.topics.in_sync(self.topic, 2))


@pytest.mark.long
def test_leaders_that_are_killed_and_stopped_cost_no_line_and_none_is_read_twice(
    spark: SparkSession, cluster: list[Broker], tmp_path: Path
) -> None:
    story = Story(cluster)
    killed, stopped = cluster[2], cluster[0]
    alone = Reader(KafkaSource(story.topics.address, story.topic))
    assert story.topics.leaders(story.topic) == {1, 2, 3}
    with live(spark, story.topics, tmp_path, story.topic) as job:
        written = story.goes_on()
        job.until(lambda: job.lines == written)
        alone.drain()
        killed.kill()
        while_dead = story.goes_on()
        job.until(lambda: job.lines == while_dead)
        assert killed.id not in story.topics.leaders(story.topic)
        story.topics.until(lambda: _read(alone, while_dead))
        killed.start()
        story.heals()
        stopped.stop()
        while_stopped = story.goes_on()
        job.until(lambda: job.lines == while_stopped)
        story.topics.until(lambda: _read(alone, while_stopped))
        stopped.start()
        story.heals()
        in_the_end = story.goes_on()
        job.until(lambda: job.lines >= in_the_end)
        story.topics.until(lambda: _read(alone, in_the_end))
        assert job.store.losses() == []
    assert job.lines == in_the_end
    assert sorted(text for _, text in alone.lines()) == sorted(story.lines)
    assert alone.contiguous()
    assert alone.lost == []
    story.topics.close()


def _read(reader: Reader, lines: int) -> bool:
    """Read a batch if there is one; a leader that goes while it is read would be asked again by the job."""
    try:
        reader.batch()
    except SourceAway:
        reader.batches.pop()
    return len(reader.lines()) >= lines
