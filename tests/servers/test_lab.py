"""The first act of `make lab`: all stories from the topics of a real broker to Slack, each incident told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.acts import play_stories
from tests.servers.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime")]


def test_the_stories_come_out_of_kafka_as_the_samples_say(broker: Broker, tmp_path: Path) -> None:
    assert play_stories(broker.address, tmp_path) == []
