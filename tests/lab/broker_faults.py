"""Faults of brokers, and what brokers do that is no fault."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Mapping

from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, Layout, Scene
from tests.servers.broker import Node, free_ports

SILENT_S = 70  # who complains of a broker does so for a minute before it is called silent
ANOTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyMQ"
_VICTIM = 3


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
    "wrong-cluster-id": Fault(wrong_cluster_id),
    "port-taken": Fault(port_taken),
    "log-dir-locked": Fault(log_dir_locked, Layout(apart=True)),
    "rolling-restart": Fault(rolling_restart),
    "planned-stop": Fault(planned_stop),
    "retention": Fault(retention, _ROLLED),
}


def _signal(on: Scene, number: signal.Signals) -> None:
    pid = on.servers[_VICTIM].pid
    assert pid is not None
    os.kill(pid, number)


def _node(on: Scene) -> Node:
    return next(node for node in on.nodes if node.id == _VICTIM)
