"""Faults of Kafka Connect, and what they do that is no fault."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.clients import ConnectWorker
from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, Layout, Scene
from tests.servers.broker import free_ports

_FILES = "org.apache.kafka.connect.file.FileStream{}Connector"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_DLQ = "errors.deadletterqueue.topic"
_TOLERANT = {"errors.tolerance": "all", "errors.log.enable": "true"}


def converter_failure(on: Scene) -> None:
    _broken_sink(on)
    on.seen("Task is being killed")
    on.runs()


def errors_tolerated(on: Scene) -> None:
    _broken_sink(on, **_TOLERANT)
    on.seen("Error encountered in task", times=10)
    on.runs()


def dlq_cannot_be_made(on: Scene) -> None:
    _broken_sink(on, **_TOLERANT, **{f"{_DLQ}.name": "readings-dlq", f"{_DLQ}.replication.factor": "5"})
    on.seen("Task is being killed")
    on.runs()


def dlq_refuses(on: Scene) -> None:
    on.topic("readings-dlq", **{"max.message.bytes": "50"})
    _broken_sink(on, **_TOLERANT, **{f"{_DLQ}.name": "readings-dlq", f"{_DLQ}.replication.factor": "3"})
    on.seen("Could not produce message to dead letter queue")
    on.runs()


def sink_without_its_folder(on: Scene) -> None:
    on.topic("readings")
    worker = _started(on)
    worker.create("readings-file", _sink(str(on.folder / "not-mounted" / "readings.txt")))
    on.seen("Task is being killed")
    on.runs()


def transformation_fails(on: Scene) -> None:
    taken = {"transforms": "id", "transforms.id.field": "id"}
    _source(on, **taken, **{"transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Value"})
    on.seen("Task is being killed")
    on.runs()


def source_record_too_large_client(on: Scene) -> None:
    _source(on, "x" * 1_500_000)
    on.seen("Task is being killed")
    on.runs()


def offsets_topic_not_compacted(on: Scene) -> None:
    on.topic("connect-offsets", **{"cleanup.policy": "delete"})
    on.worker().start()
    on.seen("is required to have 'cleanup.policy=compact'")
    on.runs()


def worker_finds_no_broker(on: Scene) -> None:
    on.worker(address=f"127.0.0.1:{free_ports(1)[0]}").start()
    on.seen("Failed to connect to and describe Kafka cluster")
    on.runs(5)


def connectors_come_and_go(on: Scene) -> None:
    worker = _source(on)
    on.seen("Finished starting connectors and tasks", times=2)
    for method, path in (("PUT", "/pause"), ("PUT", "/resume"), ("POST", "/restart?includeTasks=true"), ("DELETE", "")):
        on.runs(5)
        worker.ask(method, f"/connectors/lines{path}")
    on.runs()


def source_record_too_large_broker(on: Scene) -> None:
    _source(on, "x" * 500_000)
    on.seen("Task is being killed")
    on.runs()


def worker_killed(on: Scene) -> None:
    workers = _two_workers(on)
    workers[1].kill()
    on.seen("has failed, removing it from the group")
    on.runs(120)


def rest_port_taken(on: Scene) -> None:
    worker = _started(on)
    on.seen("REST resources initialized")
    on.worker("connect-2", listeners=worker.url).start()
    on.seen("Failed to bind")
    on.runs()


def all_brokers_killed(on: Scene) -> None:
    """The whole cluster dies under its clients and a worker."""
    _source(on)
    on.runs()
    for id_ in BROKERS:
        on.servers[id_].kill()
    on.seen("Rebootstrapping with [", times=3)
    on.runs(90)


def unknown_plugin(on: Scene) -> None:
    connector = on.folder / "readings.properties"
    connector.write_text("name=readings\nconnector.class=com.example.ReadingSink\ntasks.max=1\ntopics=readings\n")
    said = {"bootstrap.servers": on.address, "offset.storage.file.filename": str(on.folder / "offsets")}
    converters = {f"{part}.converter": _STRINGS for part in ("key", "value")}
    where = {"listeners": f"http://127.0.0.1:{free_ports(1)[0]}", "plugin.discovery": "service_load"}
    words = ("org.apache.kafka.connect.cli.ConnectStandalone", "{}", str(connector))
    on.standalone("connect", *words, **said, **converters, **where).start()
    on.seen("Failed to find any class")
    on.runs()


_TIGHT = Layout(topic={"max.message.bytes": "100000"})
FAULTS: Mapping[str, Fault] = {
    "converter-failure": Fault(converter_failure),
    "errors-tolerated": Fault(errors_tolerated),
    "dlq-cannot-be-made": Fault(dlq_cannot_be_made),
    "dlq-refuses": Fault(dlq_refuses),
    "sink-without-its-folder": Fault(sink_without_its_folder),
    "transformation-fails": Fault(transformation_fails),
    "source-record-too-large-client": Fault(source_record_too_large_client),
    "offsets-topic-not-compacted": Fault(offsets_topic_not_compacted),
    "worker-finds-no-broker": Fault(worker_finds_no_broker),
    "connectors-come-and-go": Fault(connectors_come_and_go),
    "source-record-too-large-broker": Fault(source_record_too_large_broker, _TIGHT),
    "worker-killed": Fault(worker_killed),
    "rest-port-taken": Fault(rest_port_taken),
    "all-brokers-killed": Fault(all_brokers_killed),
    "unknown-plugin": Fault(unknown_plugin),
}


def _started(on: Scene) -> ConnectWorker:
    worker = on.worker()
    worker.start()
    return worker


def _sink(file: str, **more: str) -> Mapping[str, str]:
    return {"connector.class": _FILES.format("Sink"), "topics": "readings", "file": file, "tasks.max": "1", **more}


def _broken_sink(on: Scene, **more: str) -> None:
    """Start a sink whose converter wants JSON, on a topic that is plain text."""
    on.topic("readings")
    worker = _started(on)
    on.producer("sensors", topic="readings").start(1, record="{}: 21.5 degrees")
    worker.create("readings-file", _sink(str(on.folder / "readings.txt"), **more))


def _source(on: Scene, text: str = "a line", **more: str) -> ConnectWorker:
    """Start a source that writes the lines of a file to the topic; return its worker."""
    file = on.folder / "lines.txt"
    file.write_text("first line\n")
    worker = _started(on)
    said = {"connector.class": _FILES.format("Source"), "topic": "orders", "file": str(file), "tasks.max": "1"}
    worker.create("lines", {**said, "value.converter": _STRINGS, **more})
    with file.open("a") as lines:
        lines.write(f"{text}\n")
    return worker


def _group(on: Scene, **settings: str) -> list[ConnectWorker]:
    """Start a group of two workers; return them."""
    workers = [on.worker(f"worker-{number}", **{"client.id": f"worker-{number}", **settings}) for number in (1, 2)]
    for worker in workers:
        worker.start()
    return workers


def _two_workers(on: Scene) -> list[ConnectWorker]:
    """Start a group of two workers with a sink that works; return them."""
    on.topic("readings")
    workers = _group(on)
    workers[0].create("readings-file", _sink(str(on.folder / "readings.txt")))
    on.runs()
    return workers
