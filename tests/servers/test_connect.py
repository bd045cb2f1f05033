"""A real Connect worker is asked: what kills its task, and what is done to it on purpose, is known from its status alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors import connect
from tests.lab.clients import ConnectWorker
from tests.servers.asking import Asking, scanned
from tests.servers.broker import Broker
from tests.servers.jars import all_jars

SETTINGS = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "topic": "lines",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}
LARGER = {"producer.override.max.request.size": "2097152", "producer.override.buffer.memory": "67108864"}


@pytest.fixture(scope="module")
def worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectWorker]:
    copies = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    running = ConnectWorker(all_jars(), tmp_path_factory.mktemp("connect"), "connect", broker.address, copies)
    running.start()
    try:
        yield running
    finally:
        running.kill()


def created(worker: ConnectWorker, name: str, file: Path, **more: str) -> None:
    worker.create(name, {**SETTINGS, "file": str(file), **more})


def test_a_task_killed_by_too_large_a_record_opens_and_ends_by_its_status(worker: ConnectWorker, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("first line\n")
    created(worker, "lines", file)
    asking = Asking(connect.open_source, tmp_path, urls=[worker.url])
    asking.until('"id":0,"state":"RUNNING"')
    with file.open("a") as lines:
        lines.write("x" * 1_500_000 + "\n")
    asking.until('"state":"FAILED"')
    (incident,) = asking.incidents()
    (logged,) = (seen for seen in scanned(worker.log) if seen.labels.get("connector") == "lines")
    assert (incident.rule, incident.severity, incident.status) == (logged.rule, "critical", "open")
    assert incident.rule == "connect-record-too-large-client"
    assert {name: incident.labels[name] for name in ("connector", "task")} == {"connector": "lines", "task": "0"}
    assert incident.captures["size"] == logged.captures["size"]
    created(worker, "lines", file, **LARGER)
    worker.ask("POST", "/connectors/lines/restart?includeTasks=true")
    asking.until('"id":0,"state":"RUNNING"')
    for _ in range(3):
        asking.round()
    (incident,) = asking.incidents()
    assert incident.status == "resolved"


def test_what_is_done_on_purpose_is_no_incident(worker: ConnectWorker, tmp_path: Path) -> None:
    file = tmp_path / "more.txt"
    file.write_text("first line\n")
    created(worker, "more", file)
    asking = Asking(connect.open_source, tmp_path, urls=[worker.url])
    asking.until('"name":"more"')
    for method, path, told in (
        ("PUT", "/pause", '"state":"PAUSED"'),
        ("PUT", "/resume", '"state":"RUNNING"'),
        ("PUT", "/stop", '"state":"STOPPED"'),
        ("DELETE", "", "No status found for connector more"),
    ):
        worker.ask(method, f"/connectors/more{path}")
        asking.until(told)
    assert "No status found for task more-0" in asking.record.read_text()
    assert [incident.rule for incident in asking.incidents() if incident.labels.get("connector") == "more"] == []
