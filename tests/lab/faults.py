"""Faults provoked on a real cluster, one at a time, and harmless events; each with the logs that everybody leaves.

What tocsin must say of each stands in `tests/captured/<name>/expected.yml`, whether the logs are fresh or those kept there.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.cli.intake import Intake
from engine.cli.triage import triage
from tests.lab.running import say
from tests.lab.scene import BROKERS, PLAIN, Layout, Scene, scene
from tests.rulepack.playing import plan, unlike
from tests.servers.broker import Node, free_ports
from tests.servers.secured import USER

CAPTURED = Path(__file__).parents[1] / "captured"
LAB = Path(__file__).parents[2] / ".lab"
RUNS_S = 20
SILENT_S = 70  # who complains of a broker does so for a minute before it is called silent
ANOTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyMQ"
_VICTIM = 3
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class Fault:
    """What is done to a cluster at work. `provoke` returns when its symptoms are printed."""

    provoke: Callable[[Scene], None]
    layout: Layout = PLAIN


def broker_killed(on: Scene) -> None:
    on.servers[_VICTIM].kill()
    on.seen(f"Fencing broker {_VICTIM}")
    on.runs(SILENT_S)


def broker_hung(on: Scene) -> None:
    _signal(on, signal.SIGSTOP)
    on.seen(f"Fencing broker {_VICTIM}")
    on.runs(SILENT_S)


def broker_hung_and_woken(on: Scene) -> None:
    broker_hung(on)
    _signal(on, signal.SIGCONT)
    on.in_sync()
    on.runs()


def disk_full(on: Scene) -> None:
    data = on.folder / f"broker-{_VICTIM}" / "data"
    with (data / "somebody-elses.dump").open("wb") as dump:
        free = shutil.disk_usage(data).free
        os.posix_fallocate(dump.fileno(), 0, free - 64 * 1024)
    on.seen("Error while appending records to")
    on.runs()


def min_isr_lost(on: Scene) -> None:
    for id_ in BROKERS[1:]:
        on.servers[id_].kill()
        on.runs(5)
    on.seen("NotEnoughReplicasException")
    on.runs(45)


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


def wrong_cluster_id(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    shutil.rmtree(on.folder / f"broker-{_VICTIM}" / "data")
    on.servers[_VICTIM] = on.server(_node(on), cluster_id=ANOTHER_CLUSTER)
    on.servers[_VICTIM].launch()
    on.seen("INCONSISTENT_CLUSTER_ID")
    on.runs()


def port_taken(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    with socket.create_server(("127.0.0.1", on.servers[_VICTIM].port)):
        on.servers[_VICTIM].launch()
        on.seen("failed to bind")
        on.runs()


def log_dir_locked(on: Scene) -> None:
    (port,) = free_ports(1)
    data = on.folder / f"broker-{_VICTIM}" / "data"
    again = on.server(Node(_VICTIM, port, 0, "broker"), f"broker-{_VICTIM}-again", f"\nlog.dirs={data}\n")
    on.servers[-_VICTIM] = again
    again.launch()
    on.seen("Failed to acquire lock")
    on.runs()


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


def rolling_restart(on: Scene) -> None:
    for id_ in BROKERS:
        on.servers[id_].stop()
        on.servers[id_].start()
        on.in_sync()
        on.runs(10)


def planned_stop(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    on.runs()
    on.servers[_VICTIM].start()
    on.in_sync()
    on.runs(10)


def consumer_leaves(on: Scene) -> None:
    on.consumers[1].stop()
    on.runs()
    on.consumers[1].start()
    on.runs()


def retention(on: Scene) -> None:
    on.seen("Deleting segment", times=3)
    on.runs()


_ROLLED = Layout(
    settings="\nlog.retention.check.interval.ms=5000\n",
    topic={"segment.bytes": "1048576", "retention.ms": "10000", "file.delete.delay.ms": "1000"},
    rate=200,
    size=2000,
)
FAULTS: Mapping[str, Fault] = {
    "broker-killed": Fault(broker_killed),
    "broker-hung": Fault(broker_hung),
    "broker-hung-and-woken": Fault(broker_hung_and_woken),
    "disk-full": Fault(disk_full, Layout(small_disk=_VICTIM)),
    "min-isr-lost": Fault(min_isr_lost, Layout(apart=True)),
    "record-too-large-client": Fault(record_too_large_client),
    "record-too-large-broker": Fault(record_too_large_broker, Layout(topic={"max.message.bytes": "100000"})),
    "slow-consumer": Fault(slow_consumer, Layout(consumers={"max.poll.interval.ms": "8000", "max.poll.records": "50"})),
    "wrong-cluster-id": Fault(wrong_cluster_id),
    "port-taken": Fault(port_taken),
    "log-dir-locked": Fault(log_dir_locked, Layout(apart=True)),
    "sasl-wrong-password": Fault(sasl_wrong_password, Layout(secured=True)),
    "tls-plaintext-client": Fault(tls_plaintext_client, Layout(secured=True)),
    "tls-plaintext-client-with-room": Fault(tls_plaintext_client_with_room, Layout(secured=True)),
    "tls-untrusted": Fault(tls_untrusted, Layout(secured=True)),
    "tls-on-plaintext": Fault(tls_on_plaintext),
    "converter-failure": Fault(converter_failure),
    "rolling-restart": Fault(rolling_restart),
    "planned-stop": Fault(planned_stop),
    "consumer-leaves": Fault(consumer_leaves),
    "retention": Fault(retention, _ROLLED),
}


def faults(jars: Path, folder: Path, names: Sequence[str] = (), runs_s: float = RUNS_S) -> list[str]:
    """Provoke the faults of these names, all without one, and return what tocsin says that it should not; one sentence each."""
    wrong: list[str] = []
    for name in names or FAULTS:
        say(f"{name}: three brokers, a producer and two consumers")
        logs = provoked(jars, folder / name, FAULTS[name], runs_s)
        said = judged(logs, name)
        say(f"{name}: {'; '.join(said) or 'as it should be'}")
        wrong += [f"{name}: {sentence}" for sentence in said]
    return wrong


def provoked(jars: Path, folder: Path, fault: Fault, runs_s: float = RUNS_S) -> Path:
    """Provoke a fault on a cluster of its own; return the folder with the logs as they were before anything was ended."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with scene(jars, folder, fault.layout, runs_s) as made:
        try:
            fault.provoke(made)
        finally:
            made.leave_logs(folder / "logs")
    return folder / "logs"


def judged(logs: Path, name: str) -> list[str]:
    """Scan a folder of logs; return in what the answer is not as expected of the fault `name`, one sentence each."""
    answer = triage(Intake([str(logs)], {}).chunks(), plan(), [])
    return unlike([*answer.incidents, *answer.pending], CAPTURED / name)


def _signal(on: Scene, number: signal.Signals) -> None:
    pid = on.servers[_VICTIM].pid
    assert pid is not None
    os.kill(pid, number)


def _node(on: Scene) -> Node:
    return next(node for node in on.nodes if node.id == _VICTIM)


def _door(on: Scene, kind: str) -> str:
    return f"127.0.0.1:{on.doors[1].ports[kind]}"
