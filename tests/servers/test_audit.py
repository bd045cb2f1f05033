"""A real cluster with risks that were planted is audited: all are found, and the commands that are printed take them away."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, NoError
from kafka.structs import OffsetAndMetadata
from msgspec import Struct
from msgspec.structs import replace

from engine.cli.main import main
from engine.risks.judging import CHECK_IDS
from tests.lab.clients import ConnectWorker
from tests.servers.broker import NO_DOORS, Broker, brokers
from tests.servers.jars import all_jars

WITHIN_S = 60
SETTINGS = """
message.max.bytes=1048588
log.retention.ms=604800000
min.insync.replicas=2
transaction.state.log.min.isr=2
replica.fetch.max.bytes=10485760
unclean.leader.election.enable=true
"""
RACKS = {1: "broker.rack=a\n", 2: "broker.rack=a\n", 3: "broker.rack=b\n"}
EVERYWHERE = [1, 2, 3]
TOPICS: Mapping[str, Mapping[str, Any]] = {
    "account_event": {"assignments": {0: [2]}, "configs": {"min.insync.replicas": "1"}},
    "worthless": {"assignments": {0: EVERYWHERE}, "configs": {"min.insync.replicas": "1"}},
    "impossible": {"assignments": {0: EVERYWHERE}, "configs": {"min.insync.replicas": "3"}},
    "unclean": {"assignments": {0: EVERYWHERE}, "configs": {"unclean.leader.election.enable": "true"}},
    "together": {"assignments": {0: [1, 2], 1: [2, 3]}},
    "history": {"assignments": {0: EVERYWHERE}, "configs": {"retention.ms": "259200000"}},
    "wide": {"assignments": {0: EVERYWHERE}, "configs": {"max.message.bytes": "20000000"}},
    "lines": {"assignments": {0: EVERYWHERE}},
}
JSON = "org.apache.kafka.connect.json.JsonConverter"
SOURCE = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "topic": "lines",
    "value.converter": JSON,
    "value.converter.schemas.enable": "false",
    "producer.override.max.request.size": "2097152",
}
SINK = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "lines",
    "value.converter": JSON,
    "errors.tolerance": "all",
    "consumer.override.max.partition.fetch.bytes": "524288",
}
PROGRAMS = {
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
FOUND = {
    ("topic-one-replica", "account_event"),
    ("min-insync-worthless", "worthless"),
    ("min-insync-impossible", "impossible"),
    ("min-insync-impossible", "together"),
    ("unclean-election", "unclean"),
    ("unclean-election-by-default", "default"),
    ("one-rack", "together"),
    ("internal-topic-one-replica", "connect-configs"),
    ("internal-topic-one-replica", "connect-offsets"),
    ("internal-topic-one-replica", "connect-status"),
    ("auto-created-topics", "default"),
    ("retention-below-lag", "late"),
    ("group-without-members", "late"),
    ("errors-tolerated-silently", "sink"),
    ("sizes-contradict", "source"),
    ("converters-contradict", "sink"),
    ("fetch-below-record", "wide"),
    ("fetch-below-record", "sink"),
}
# what the printed commands cannot do: a broker takes these settings when it starts
AT_START = {"auto.create.topics.enable": "false", "replica.fetch.max.bytes": "20000000"}


class Lab(Struct, frozen=True):
    """The brokers and the worker, with risks planted, and the folder of the test."""

    brokers: list[Broker]
    worker: ConnectWorker
    jars: Path
    folder: Path

    def audit(self, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Mapping[str, Any]]:
        """Audit; return the exit code and what is said of the cluster."""
        capsys.readouterr()
        addresses = ",".join(broker.address for broker in self.brokers)
        code = main(["audit", "--bootstrap", addresses, "--connect-url", self.worker.url, "--format", "json", *more])
        out, err = capsys.readouterr()
        assert out, err
        (cluster,) = json.loads(out)["clusters"]
        return code, cluster

    def shell(self, command: str, files: Mapping[str, str]) -> None:
        """Run a command as somebody does who pastes it; Kafka's scripts are on the path."""
        for name, content in files.items():
            (self.folder / name).write_text(content)
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", command],
            check=False,
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    jars, folder = all_jars(), tmp_path_factory.mktemp("audited")
    with brokers(jars, folder, 3, replace(NO_DOORS, settings=SETTINGS), RACKS) as three:
        copies = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
        worker = ConnectWorker(jars, folder, "connect", three[0].address, copies)
        worker.start()
        try:
            planted = Lab(three, worker, jars, folder)
            plant(planted)
            yield planted
        finally:
            worker.kill()


def plant(lab: Lab) -> None:
    """Plant the risks, and put Kafka's scripts into a folder."""
    scripts = lab.folder / "bin"
    scripts.mkdir()
    for name, program in PROGRAMS.items():
        script = scripts / name
        script.write_text(
            f'#!/bin/sh\nexec java -Xmx128m -XX:TieredStopAtLevel=1 -cp {shlex.quote(f"{lab.jars}/*")} {program} "$@"\n'
        )
        script.chmod(0o755)
    addresses = [broker.address for broker in lab.brokers]
    client = KafkaAdminClient(bootstrap_servers=addresses)
    client.create_topics(dict(TOPICS))
    producer = KafkaProducer(bootstrap_servers=addresses)
    long_ago = datetime.now(UTC) - timedelta(days=2)
    for number in range(5):
        producer.send("history", b"record", partition=0, timestamp_ms=int(long_ago.timestamp() * 1000) + number)
    producer.flush(WITHIN_S)
    producer.close()
    deadline = time.monotonic() + WITHIN_S
    while not read_nothing(client) and time.monotonic() < deadline:
        time.sleep(0.5)
    client.close()
    file = lab.folder / "lines.txt"
    file.write_text("first line\n")
    lab.worker.create("source", {**SOURCE, "file": str(file)})
    lab.worker.create("sink", {**SINK, "file": str(lab.folder / "sink.txt")})


def read_nothing(client: KafkaAdminClient) -> bool:
    """Commit that a group has read nothing of `history`; return False while its coordinator comes up."""
    try:
        answer = client.alter_group_offsets("late", {TopicPartition("history", 0): OffsetAndMetadata(0, "", -1)})
    except KafkaError:
        return False
    return set(answer.values()) == {NoError}


def until_used(lab: Lab, capsys: pytest.CaptureFixture[str]) -> tuple[int, Mapping[str, Any]]:
    """Audit until both connectors have used their topics; return the last answer."""
    deadline = time.monotonic() + WITHIN_S
    while True:
        code, cluster = lab.audit(capsys)
        if named(cluster) >= FOUND or time.monotonic() > deadline:
            return code, cluster
        time.sleep(0.5)


def named(cluster: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(risk["check"], risk["subject"]) for risk in cluster["risks"]}


def test_planted_risks_are_found_and_the_same_in_a_record(lab: Lab, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, cluster = until_used(lab, capsys)
    assert named(cluster) == FOUND
    assert (code, cluster["unseen"]) == (1, [])
    record = tmp_path / "today.log"
    lab.audit(capsys, "--record", str(record))
    assert main(["audit", str(record), "--format", "json", "--connect-url", lab.worker.url]) == 1
    (replayed,) = json.loads(capsys.readouterr().out)["clusters"]
    assert named(replayed) == FOUND
    assert "password" not in record.read_text()


@pytest.mark.long
def test_every_printed_command_does_what_it_says(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    _, cluster = until_used(lab, capsys)
    client = KafkaAdminClient(bootstrap_servers=[broker.address for broker in lab.brokers])
    for risk in cluster["risks"]:
        for step in risk["fix"]:
            if step["run"]:
                lab.shell(step["run"], step["file"])
            deadline = time.monotonic() + WITHIN_S
            while client.list_partition_reassignments():
                assert time.monotonic() < deadline
                time.sleep(0.2)
    client.delete_groups(["late"])  # no printed command does: consumers with assign() look the same
    client.close()
    for broker in lab.brokers:
        broker.stop()
        with broker.properties.open("a") as properties:
            properties.write("".join(f"{name}={value}\n" for name, value in AT_START.items()))
        broker.start()
    deadline = time.monotonic() + WITHIN_S
    code, cluster = lab.audit(capsys)
    while code and time.monotonic() < deadline:
        time.sleep(0.5)
        code, cluster = lab.audit(capsys)
    assert (code, cluster["risks"], cluster["unseen"]) == (0, [], [])


def test_the_planted_risks_are_of_these_checks() -> None:
    assert {check for check, _ in FOUND} == set(CHECK_IDS) - {"even-voters", "settings-apart", "versions-apart"}
