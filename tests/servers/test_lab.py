"""The acts of `make lab`: the stories from a real broker and from Elasticsearch to Slack, and a broker that is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.acts import dead_broker, play_stories
from tests.lab.indexed import play_indexed_stories
from tests.servers.broker import Broker
from tests.servers.elasticsearch import ElasticsearchNode
from tests.servers.jars import kafka_jars

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("runtime")]


def test_the_stories_come_out_of_kafka_as_the_samples_say(broker: Broker, tmp_path: Path) -> None:
    assert play_stories(broker.address, tmp_path) == []


def test_the_stories_come_out_of_elasticsearch_as_the_samples_say(elasticsearch: ElasticsearchNode, tmp_path: Path) -> None:
    assert play_indexed_stories(elasticsearch, tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_broker_that_is_killed_is_told_from_the_logs_of_its_cluster(broker: Broker, tmp_path: Path) -> None:
    assert dead_broker(kafka_jars(), tmp_path) == []
