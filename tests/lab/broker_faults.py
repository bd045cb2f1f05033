"""Faults of brokers, and what brokers do that is no fault."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.fault import Fault
from tests.lab.scene import BROKERS, OUTSIDE, TOPIC, Layout, Scene
from tests.servers.broker import Node, free_ports
from tests.servers.secured import PASSWORD, USER
from tests.servers.topics import Topics

SILENT_S = 70  # who complains of a broker does so for a minute before it is called silent
ANOTHER_CLUSTER = "YW5vdGhlci1jbHVzdGVyMQ"
_VICTIM = 3
OLD = "3.9.2"
_ELSEWHERE = "127.0.0.2"


def broker_killed(on: Scene) -> None:
    on.servers[_VICTIM].kill()
    on.seen(f"Fencing broker {_VICTIM}")
    on.runs(SILENT_S)


def broker_hung(on: Scene) -> None:
    on.pause(_VICTIM)
    on.seen(f"Fencing broker {_VICTIM}")
    on.runs(SILENT_S)


def broker_hung_and_woken(on: Scene) -> None:
    broker_hung(on)
    on.wake(_VICTIM)
    on.in_sync()
    on.runs()


def disk_full(on: Scene) -> None:
    _fill(on, but=64 * 1024)
    on.seen("Error while appending records to")
    on.runs()


def min_isr_lost(on: Scene) -> None:
    for id_ in BROKERS[1:]:
        on.servers[id_].kill()
        on.runs(5)
    on.seen("NotEnoughReplicasException")
    on.runs(45)


def all_killed_and_restarted(on: Scene) -> None:
    for id_ in BROKERS:
        on.servers[id_].kill()
    on.runs(5)
    for id_ in BROKERS:
        on.servers[id_].launch()
    on.in_sync()
    on.runs(40)
    on.consumers[1].stop()  # somebody has to say that time goes on
    on.runs(5)


def wrong_cluster_id(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    shutil.rmtree(_data(on))
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
    again = on.server(Node(_VICTIM, port, 0, "broker"), f"broker-{_VICTIM}-again", f"\nlog.dirs={_data(on)}\n")
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


def broker_killed_and_restarted(on: Scene) -> None:
    on.servers[_VICTIM].kill()
    on.seen(f"Fencing broker {_VICTIM}")
    on.runs()
    on.servers[_VICTIM].start()
    on.in_sync()
    on.runs()


def node_id_mismatch(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    known = _data(on) / "meta.properties"
    known.write_text(known.read_text().replace(f"node.id={_VICTIM}", "node.id=2"))
    on.servers[_VICTIM].launch()
    on.seen("doesn't match previous node id")
    on.runs()


def older_binaries(on: Scene) -> None:
    """A broker comes back with a version that does not know the cluster's metadata."""
    on.servers[_VICTIM].stop()
    on.servers[_VICTIM] = on.server(_node(on), kafka=OLD)
    on.servers[_VICTIM].launch()
    on.runs(30)


def node_id_twice(on: Scene) -> None:
    """A second server has the id of a broker, and a disk of its own."""
    (port,) = free_ports(1)
    impatient = "\ninitial.broker.registration.timeout.ms=60000\n"
    on.servers[-_VICTIM] = on.server(Node(_VICTIM, port, 0, "broker"), f"broker-{_VICTIM}-again", impatient)
    on.servers[-_VICTIM].launch()
    on.seen("DUPLICATE_BROKER_REGISTRATION")
    on.runs(90)


def too_many_connections(on: Scene) -> None:
    """One machine has more connections than it may."""
    callers = []
    for _ in range(40):
        callers.append(socket.create_connection(("127.0.0.1", on.servers[1].port), source_address=(_ELSEWHERE, 0)))
        on.runs(0.3)
    on.runs()
    for caller in callers:
        caller.close()


def topic_deleted(on: Scene) -> None:
    """Somebody deletes a topic that others write and read."""
    topics = Topics(on.address)
    topics.drop(TOPIC)
    topics.close()
    on.runs(60)


def not_formatted(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    shutil.rmtree(_data(on))
    _data(on).mkdir()
    on.servers[_VICTIM].launch()
    on.seen("No readable meta.properties files found")
    on.runs()


def invalid_setting(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    _set(on, "log.retention.hours=a week")
    on.servers[_VICTIM].launch()
    on.seen("Invalid value a week")
    on.runs()


def files_deleted(on: Scene) -> None:
    for folder in _data(on).glob(f"{TOPIC}-*"):
        shutil.rmtree(folder)
    on.seen("FileNotFoundException")
    on.runs(40)


def disk_full_at_start(on: Scene) -> None:
    on.servers[_VICTIM].stop()
    _fill(on)
    on.servers[_VICTIM].launch()
    on.runs(40)


def heap_too_small_for_a_stranger(on: Scene) -> None:
    """A client that talks TLS to the plain port: what it says is taken for the length of a request, which is not refused."""
    on.producer("billing-api", on.servers[_VICTIM].address, **{"security.protocol": "SSL"}).start(1)
    on.seen("OutOfMemoryError", times=3)
    on.runs()


def too_many_open_files(on: Scene) -> None:
    pid = on.servers[_VICTIM].pid
    assert pid is not None
    held = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (held + 2, held + 2))
    callers = [socket.create_connection(("127.0.0.1", on.servers[_VICTIM].port)) for _ in range(5)]
    on.seen("Too many open files")
    on.runs()
    for caller in callers:
        caller.close()


def log_dir_not_writable(on: Scene) -> None:
    """Nothing can be made or renamed in the folders of the partitions, which fails when a segment is rolled."""
    folders = [str(folder) for folder in _data(on).glob(f"{TOPIC}-*")]
    subprocess.run(["chattr", "+i", *folders], check=True)
    try:
        on.seen("Stopping serving replicas in dir")
        on.runs()
    finally:
        subprocess.run(["chattr", "-i", *folders], check=True)


def index_corrupted(on: Scene) -> None:
    on.servers[_VICTIM].kill()
    for index in _data(on).glob(f"{TOPIC}-*/*.index"):
        index.write_bytes(b"not an index")
    on.seen(f"Fencing broker {_VICTIM}")
    on.servers[_VICTIM].start()
    on.in_sync()
    on.runs()


def unclean_election(on: Scene) -> None:
    """Of two replicas the one goes, the other takes records and goes too, and the first one comes back alone."""
    on.topic("ledger", replicas=2, unclean_leader_election_enable="true")
    on.producer("ledger-api", topic="ledger").start()
    on.runs()
    on.servers[2].kill()
    on.seen("Fencing broker 2")
    on.runs()
    on.servers[_VICTIM].kill()
    on.seen(f"Fencing broker {_VICTIM}")
    on.servers[2].start()
    on.seen("using an unclean election")
    on.runs()


def denied_by_acl(on: Scene) -> None:
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
    said = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    door = f"127.0.0.1:{on.doors[1].ports['SASL_PLAINTEXT']}"
    on.producer("billing-api", door, **said).start(1)
    on.seen("TOPIC_AUTHORIZATION_FAILED")
    on.runs()


def unreachable_listener(on: Scene) -> None:
    on.producer("billing-api", f"127.0.0.1:{on.doors[1].ports[OUTSIDE]}").start(1)
    on.runs(60)


def admin_work(on: Scene) -> None:
    """Partitions are added, moved, led by others, kept otherwise, and a topic is deleted."""
    topics = Topics(on.address)
    topics.make(2, "invoices", 1)
    topics.grow(TOPIC, 6)
    topics.keep(TOPIC, retention_ms="3600000")
    _move(on, {("invoices", partition): [2, 3] for partition in range(2)} | {(TOPIC, 0): [3, 2, 1]})
    on.tool("org.apache.kafka.tools.LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    on.runs()
    topics.drop("invoices")
    topics.close()
    on.runs()


_ROLLED = Layout(
    settings="\nlog.retention.check.interval.ms=5000\n",
    topic={"segment.bytes": "1048576", "retention.ms": "10000", "file.delete.delay.ms": "1000"},
    rate=200,
    size=2000,
)
_BUSY = Layout(topic={"segment.bytes": "1048576"}, rate=100, size=2000)
_AUTHORIZED = Layout(
    secured=True,
    settings="\nauthorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:ANONYMOUS\n",
)
_OLD = Layout(kafka=OLD)
FAULTS: Mapping[str, Fault] = {
    "broker-killed": Fault(broker_killed),
    "broker-hung": Fault(broker_hung),
    "broker-hung-and-woken": Fault(broker_hung_and_woken),
    "disk-full": Fault(disk_full, Layout(small_disk=_VICTIM)),
    "min-isr-lost": Fault(min_isr_lost, Layout(apart=True)),
    "all-killed-and-restarted": Fault(all_killed_and_restarted),
    "wrong-cluster-id": Fault(wrong_cluster_id),
    "port-taken": Fault(port_taken),
    "log-dir-locked": Fault(log_dir_locked, Layout(apart=True)),
    "rolling-restart": Fault(rolling_restart),
    "planned-stop": Fault(planned_stop),
    "retention": Fault(retention, _ROLLED),
    "broker-killed-3-9": Fault(broker_killed, _OLD),
    "planned-stop-3-9": Fault(planned_stop, _OLD),
    "rolling-restart-3-9": Fault(rolling_restart, _OLD),
    "broker-killed-and-restarted": Fault(broker_killed_and_restarted),
    "node-id-mismatch": Fault(node_id_mismatch),
    "older-binaries": Fault(older_binaries, Layout(apart=True)),
    "node-id-twice": Fault(node_id_twice, Layout(apart=True)),
    "too-many-connections": Fault(
        too_many_connections, Layout(settings=f"\nmax.connections.per.ip.overrides={_ELSEWHERE}:5\n")
    ),
    "topic-deleted": Fault(topic_deleted),
    "not-formatted": Fault(not_formatted),
    "invalid-setting": Fault(invalid_setting),
    "files-deleted": Fault(files_deleted, _BUSY),
    "disk-full-at-start": Fault(disk_full_at_start, Layout(small_disk=_VICTIM)),
    "heap-too-small-for-a-stranger": Fault(
        heap_too_small_for_a_stranger, Layout(settings="\nsocket.request.max.bytes=2000000000\n")
    ),
    "too-many-open-files": Fault(too_many_open_files),
    "log-dir-not-writable": Fault(log_dir_not_writable, _BUSY),
    "index-corrupted": Fault(index_corrupted),
    "unclean-election": Fault(unclean_election, Layout(apart=True, settings="\nmin.insync.replicas=1\n")),
    "denied-by-acl": Fault(denied_by_acl, _AUTHORIZED),
    "unreachable-listener": Fault(unreachable_listener, Layout(unreachable="kafka.example.internal")),
    "admin-work": Fault(admin_work),
}


def _data(on: Scene) -> Path:
    return on.folder / f"broker-{_VICTIM}" / "data"


def _fill(on: Scene, but: int = 0) -> None:
    """Take what is free where the broker's data is, but for some bytes."""
    with (_data(on) / "somebody-elses.dump").open("wb") as dump:
        os.posix_fallocate(dump.fileno(), 0, shutil.disk_usage(_data(on)).free - but)


def _set(on: Scene, setting: str) -> None:
    """Let a setting count from the next start on."""
    with on.servers[_VICTIM].properties.open("a") as file:
        file.write(f"{setting}\n")


def _move(on: Scene, wanted: Mapping[tuple[str, int], Sequence[int]]) -> None:
    """Have these replicas hold these partitions, the first of them leading."""
    plan = on.folder / "moved.json"
    partitions = [{"topic": topic, "partition": number, "replicas": list(to)} for (topic, number), to in wanted.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    on.tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute")


def _node(on: Scene) -> Node:
    return next(node for node in on.nodes if node.id == _VICTIM)
