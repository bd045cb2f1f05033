"""`tocsin run` on a real YARN, over a real Kafka broker: its executors are containers, and one may be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.cluster_runs import WITHIN_S, placed
from tests.servers.jars import NoJars
from tests.servers.topics import Topics
from tests.servers.yarn import Yarn, yarn
from tests.spark.finals import STORIES

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(2400)]


@pytest.fixture
def running(runtime: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yarn]:
    try:
        with yarn(tmp_path / "yarn") as running:
            monkeypatch.setenv("HADOOP_CONF_DIR", str(running.folder))
            yield running
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"YARN cannot be had: {missing}")


def test_a_container_is_killed_and_the_stories_end_as_in_a_scan(running: Yarn, topics: Topics, tmp_path: Path) -> None:
    place = placed(tmp_path, running, topics, STORIES, batch_lines=40)
    with place.running("--once") as process:
        place.until_stored(2, process)
        first = running.executors()
        os.kill(first[0], signal.SIGKILL)
        assert process.wait(WITHIN_S) == 1, place.said()
    place.check()
    assert len(place.expected) == 9
    assert len(first) == 2
