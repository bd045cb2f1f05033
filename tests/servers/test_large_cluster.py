"""A cluster of 5,000 topics with six partitions each, and 500 groups, is asked in a round that disturbs nobody.

Nine topics in ten are metadata only: their brokers were stopped before they were made, so that no disk holds them. They were on
several brokers, as a controller takes no more than 10,000 partitions from one that is unregistered.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NoError, NotCoordinatorError
from kafka.structs import OffsetAndMetadata
from msgspec.structs import replace

from tests.servers.broker import BROKER, NO_DOORS, Broker, Node, free_ports
from tests.servers.jars import all_jars

TOPICS, PARTITIONS, GROUPS, KEPT, AWAY = 5000, 6, 500, 500, 3
ROUND_S, MEMORY_MB = 5.0, 150.0
WITHIN_S = 120
MEASURE = """
import json, resource, sys, time
from connectors.kafka_cluster.admin import ClusterAsker, KafkaEndpoint
asker = ClusterAsker(KafkaEndpoint(sys.argv[1]))
inventory, times, lines = None, [], []
for whole in (True, False, False):
    cpu, wall = time.process_time(), time.monotonic()
    inventory, told = asker.ask(inventory, whole)
    times.append([round(time.monotonic() - wall, 2), round(time.process_time() - cpu, 2)])
    lines.append(len(told))
rows = sum(len(rows) - 1 for rows in inventory.topics.values())
counts = {"topics": len(inventory.topics), "partitions": rows, "groups": len(inventory.groups), "lags": len(inventory.lags)}
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({**counts, "times": times, "lines": lines, "peak_mb": round(peak_mb)}))
"""


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Broker]:
    jars = all_jars()
    ports = free_ports(2 * (1 + AWAY))
    nodes = [
        Node(number + 1, ports[2 * number], ports[2 * number + 1], *([BROKER] if number else [])) for number in range(1 + AWAY)
    ]
    doors = replace(NO_DOORS, settings="broker.session.timeout.ms=3600000\nlog.index.size.max.bytes=4096")
    brokers = [Broker(jars, tmp_path / str(node.id), node, [nodes[0]], doors) for node in nodes]
    try:
        brokers[0].launch()
        brokers[0].wait_up()
        client = KafkaAdminClient(bootstrap_servers=[brokers[0].address], request_timeout_ms=120_000)
        client._controller_id = 1  # a broker chosen at random passes requests on, and others are about to be stopped
        names = [f"topic-{number:04}" for number in range(TOPICS)]
        _create(client, names[:KEPT], 1)
        for number in range(GROUPS):
            _commit(client, f"group-{number:03}", names[number % KEPT])
        share = (TOPICS - KEPT) // AWAY
        for number, broker in enumerate(brokers[1:]):
            _create_away(client, names[KEPT + number * share :][:share], broker)
            _unregister(jars, brokers[0].address, broker.id)
        client.close()
        yield brokers[0]
    finally:
        for broker in brokers:
            broker.kill()


def _create_away(client: KafkaAdminClient, names: list[str], broker: Broker) -> None:
    """Create topics on a broker that does not go on to make files of them, and is killed then."""
    broker.launch()
    broker.wait_up()
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    _create(client, names, broker.id)
    broker.kill()


def _unregister(jars: Path, address: str, broker: int) -> None:
    command = ["java", "-Xmx128m", "-cp", f"{jars}/*", "org.apache.kafka.tools.ClusterTool", "unregister"]
    where = ["--bootstrap-server", address, "--id", str(broker)]
    done = subprocess.run([*command, *where], check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def _commit(client: KafkaAdminClient, group: str, topic: str) -> None:
    """Commit offsets for a group; the first one makes the topic of offsets, which takes a while."""
    deadline = time.monotonic() + WITHIN_S
    places = {TopicPartition(topic, number): OffsetAndMetadata(0, "", -1) for number in range(PARTITIONS)}
    while not _is_committed(client, group, places):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _is_committed(client: KafkaAdminClient, group: str, places: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    try:
        return set(client.alter_group_offsets(group, places).values()) == {NoError}
    except (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError):
        return False


def _create(client: KafkaAdminClient, names: list[str], broker: int) -> None:
    for at in range(0, len(names), 250):
        assignments = {number: [broker] for number in range(PARTITIONS)}
        client.create_topics({name: {"assignments": assignments} for name in names[at : at + 250]})


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_round_of_a_large_cluster_takes_seconds_and_little_memory(large: Broker) -> None:
    command = [sys.executable, "-c", MEASURE, large.address]
    measured = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout)
    print(measured)
    assert measured["topics"] >= TOPICS
    assert measured["partitions"] >= TOPICS * PARTITIONS
    assert (measured["groups"], measured["lags"]) == (GROUPS, GROUPS)
    assert measured["lines"][1:] == [1, 1]
    assert max(cpu for _, cpu in measured["times"]) <= ROUND_S
    assert measured["peak_mb"] <= MEMORY_MB
