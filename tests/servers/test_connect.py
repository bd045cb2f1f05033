"""A real Connect worker is asked: what kills its task, and what is done to it on purpose, is known from its status alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connectors import connect
from engine.asking import AskingSource
from engine.cli.intake import Intake
from engine.model.incidents import Incident
from engine.pipeline import replay
from tests.lab.clients import ConnectWorker
from tests.rulepack.playing import plan
from tests.servers.broker import Broker
from tests.servers.jars import all_jars

WITHIN_S = 120
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


class Asking:
    """Asks a worker whenever the test says so; between two rounds half a minute goes by."""

    def __init__(self, url: str, folder: Path) -> None:
        self.record, self._times = folder / "asked.log", 0
        settings = {"connection": {"urls": [url]}, "folder": str(folder / "answers"), "every_s": 30.0, "final": True}
        self._source: AskingSource[connect.ConnectInventory] = connect.open_source(
            {**settings, "labels": {}, "record": str(self.record)}
        )
        self._source.wall = self._now
        self._source.latest(self._source.initial())

    def _now(self) -> datetime:
        self._times += 1
        return datetime.now(UTC) + timedelta(seconds=30 * self._times)

    def round(self) -> str:
        """Ask once; return what was told."""
        before = self.record.stat().st_size
        rounds = self._source._rounds
        assert rounds is not None
        rounds.ask(0)
        assert rounds.failure is None, rounds.failure
        return self.record.read_text()[before:]

    def until(self, words: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while words not in self.round():
            assert time.monotonic() < deadline, self.record.read_text()
            time.sleep(0.2)

    def incidents(self) -> list[Incident]:
        return scanned(self.record)


def scanned(log: Path) -> list[Incident]:
    return list({incident.id: incident for incident in replay(Intake([str(log)], {}).lines(), plan())}.values())


def created(worker: ConnectWorker, name: str, file: Path, **more: str) -> None:
    worker.create(name, {**SETTINGS, "file": str(file), **more})


def test_a_task_killed_by_too_large_a_record_opens_and_ends_by_its_status(worker: ConnectWorker, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("first line\n")
    created(worker, "lines", file)
    asking = Asking(worker.url, tmp_path)
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
    asking = Asking(worker.url, tmp_path)
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
