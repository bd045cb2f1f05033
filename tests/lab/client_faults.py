"""Faults of clients and of Kafka Connect, and what they do that is no fault."""

from __future__ import annotations

from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import Layout, Scene
from tests.servers.secured import USER

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def record_too_large_client(on: Scene) -> None:
    on.orders.send("x" * 1_500_000)
    on.seen("RecordTooLargeException")
    on.runs()


def record_too_large_broker(on: Scene) -> None:
    on.orders.send("x" * 500_000)
    on.seen("RecordTooLargeException")
    on.runs()


def slow_consumer(on: Scene) -> None:
    for times in (1, 2, 3):
        on.consumers[0].dawdling.set()
        on.seen("This means the time between subsequent calls to poll", times=times)
        on.runs(5)
        on.consumers[0].dawdling.clear()
        on.runs(10)


def sasl_wrong_password(on: Scene) -> None:
    jaas = f'{_PLAIN} required username="{USER}" password="not-the-one";'
    said = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    on.producer("billing-api", _door(on, "SASL_PLAINTEXT"), **said).start(1)
    on.seen("failed authentication")
    on.runs()


def tls_plaintext_client(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SSL")).start(1)
    on.seen("SSL handshake failed")
    on.runs()


def tls_plaintext_client_with_room(on: Scene) -> None:
    """As before, by a client that has the memory for what it takes for the length of an answer: it is closed upon instead."""
    client = on.producer("billing-api", _door(on, "SSL"))
    client.heap = "-Xmx1g"
    client.start(1)
    on.seen("Bootstrap broker", times=5)
    on.runs()


def tls_untrusted(on: Scene) -> None:
    on.producer("billing-api", _door(on, "SSL"), **{"security.protocol": "SSL"}).start(1)
    on.seen("SSL handshake failed")
    on.runs()


def tls_on_plaintext(on: Scene) -> None:
    on.producer("billing-api", on.address, **{"security.protocol": "SSL"}).start(1)
    on.seen("Invalid receive")
    on.runs()


def converter_failure(on: Scene) -> None:
    settings = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "topics": "readings",
        "file": str(on.folder / "readings.txt"),
        "tasks.max": "1",
    }
    on.topic("readings")
    worker = on.worker()
    worker.start()
    on.producer("sensors", topic="readings").start(1, record="{}: 21.5 degrees")
    worker.create("readings-file", settings)
    on.seen("Task is being killed")
    on.runs()


def consumer_leaves(on: Scene) -> None:
    on.consumers[1].stop()
    on.runs()
    on.consumers[1].start()
    on.runs()


FAULTS: Mapping[str, Fault] = {
    "record-too-large-client": Fault(record_too_large_client),
    "record-too-large-broker": Fault(record_too_large_broker, Layout(topic={"max.message.bytes": "100000"})),
    "slow-consumer": Fault(slow_consumer, Layout(consumers={"max.poll.interval.ms": "8000", "max.poll.records": "50"})),
    "sasl-wrong-password": Fault(sasl_wrong_password, Layout(secured=True)),
    "tls-plaintext-client": Fault(tls_plaintext_client, Layout(secured=True)),
    "tls-plaintext-client-with-room": Fault(tls_plaintext_client_with_room, Layout(secured=True)),
    "tls-untrusted": Fault(tls_untrusted, Layout(secured=True)),
    "tls-on-plaintext": Fault(tls_on_plaintext),
    "converter-failure": Fault(converter_failure),
    "consumer-leaves": Fault(consumer_leaves),
}


def _door(on: Scene, kind: str) -> str:
    return f"127.0.0.1:{on.doors[1].ports[kind]}"
