"""`tocsin run` over real Kafka: what a shipper produced gives the incidents of the files it shipped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from engine.pipeline import replay
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.shipping import shipped
from tests.servers.topics import Topics
from tests.spark.finals import STORIES, finals

ROOT = Path(__file__).parents[2]
SHIPPED = [folder for folder in STORIES if folder.name[:2] in ("1-", "3-")]

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime")]


def tocsin(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine.cli.main", "run", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, check=False)


def written(folder: Path, text: str) -> Path:
    path = folder / "tocsin.yml"
    path.write_text(text)
    return path


def test_stories_shipped_through_kafka_give_the_incidents_of_their_files(topics: Topics, tmp_path: Path) -> None:
    producer = KafkaProducer(bootstrap_servers=topics.address)
    sources, expected = "", list[Any]()
    for folder in SHIPPED:
        topic = topics.make(partitions=2)
        lines = list(shipped(producer, topic, folder))
        expected += finals({incident.id: incident for incident in replay(lines, plan())}.values())
        sources += f"  - {{type: kafka, bootstrap_servers: '{topics.address}', topics: [{topic}], timezone: Asia/Seoul,"
        sources += f" labels: {{cluster: {folder.name}}}}}\n"
    producer.close()
    config = written(tmp_path, f"sources:\n{sources}store: sqlite:///state.db\nspark: {{batch_lines: 50}}\n")
    done = tocsin("-c", config, "--once")
    assert done.returncode == 1, done.stderr
    store = Store.open(f"sqlite:///{tmp_path}/state.db")
    assert finals(store.incidents()) == sorted(expected)
    assert expected
    store.close()


def test_a_dry_run_says_what_would_be_read_and_what_is_not_there(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make(partitions=2)
    topics.write(topic, ["a", "b", "c"])
    source = f"{{type: kafka, bootstrap_servers: '{topics.address}', topics: [{topic}, nowhere, x{topic}]}}"
    done = tocsin("-c", written(tmp_path, f"sources: [{source}]\n"), "--once", "--dry-run")
    assert (done.returncode, done.stderr) == (1, "")  # a part of the source can be read
    assert f"{topic}: 2 partitions, up to 3 records in a first run" in done.stdout
    assert f"the topic nowhere does not exist on {topics.address}\n" in done.stdout
    assert f"the topic x{topic} does not exist on {topics.address}; did you mean {topic}?\n" in done.stdout


def test_a_run_over_topics_that_are_not_there_says_so_and_ends(topics: Topics, tmp_path: Path) -> None:
    source = f"{{type: kafka, bootstrap_servers: '{topics.address}', topics: [nowhere]}}"
    done = tocsin("-c", written(tmp_path, f"sources: [{source}]\n"), "--once")
    assert done.returncode == 3
    assert f"the topic nowhere does not exist on {topics.address}" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_can_be_read_is_read_when_a_topic_is_missing_and_a_cluster_does_not_answer(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    topics.write(topic, ["one", "two"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = f"127.0.0.1:{taken.getsockname()[1]}"
    sources = f"  - {{type: kafka, bootstrap_servers: '{topics.address}', topics: [{topic}, nowhere]}}\n"
    sources += f"  - {{type: kafka, bootstrap_servers: '{closed}', topics: [a, b]}}\n"
    done = tocsin("-c", written(tmp_path, f"sources:\n{sources}store: sqlite:///state.db\n"), "--once")
    assert done.returncode == 3
    assert done.stderr.count(f"tocsin: the topic nowhere does not exist on {topics.address}\n") == 1
    assert done.stderr.count(f"tocsin: no broker of {closed} answers: ") == 1
    assert "batch 0: 2 lines" in done.stderr
