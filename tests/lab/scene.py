"""A cluster of three brokers with people at work on it: a producer, a group of two consumers, and the logs of all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from confluent_kafka import OFFSET_END
from msgspec import Struct, field
from msgspec.structs import replace

from tests.lab.clients import (
    CLIENT,
    CLIENT_LAYOUT,
    WORKER_LAYOUT,
    ConnectWorker,
    ConsoleConsumer,
    ConsoleProducer,
    Library,
    Program,
    Tool,
)
from tests.servers.broker import BOTH, BROKER, CLUSTER_ID, CONTROLLER, NO_DOORS, Broker, Doors, Node, free_ports
from tests.servers.jars import KAFKA, all_jars
from tests.servers.secured import made_certificate, secured_doors
from tests.servers.topics import Topics

_Tool = TypeVar("_Tool", bound=Tool)

BROKERS, CONTROLLER_ID = (1, 2, 3), 9  # of several controllers the first
TOPIC, GROUP, PRODUCER = "orders", "shipping", "orders-api"
OUTSIDE = "OUTSIDE"  # the listener of those who are told of another host
DISK = "48m"
PARTITIONS = 3
SEEN_WITHIN_S = START_WITHIN_S = 240
_POLL_S = 0.2
_SETTINGS = """
offsets.topic.replication.factor=3
offsets.topic.num.partitions=5
min.insync.replicas=2
auto.create.topics.enable=false
num.partitions=3
log.cleaner.backoff.ms=15000
group.initial.rebalance.delay.ms=3000
initial.broker.registration.timeout.ms=240000
"""
_PRODUCER = {"acks": "all", "retries": "2147483647", "request.timeout.ms": "10000", "delivery.timeout.ms": "30000"}


class Layout(Struct, frozen=True):
    """What the cluster of a history needs besides three brokers that are their own quorum. `kafka` is its version."""

    kafka: str = KAFKA[2]
    apart: bool = False  # the quorum are controllers of their own
    controllers: int = 1  # how many, where they are apart
    members: int = 2  # of the group that reads
    secured: bool = False  # the brokers also listen with passwords and TLS
    small_disk: int = 0  # the broker whose data is on a file system of DISK
    settings: str = ""  # of all brokers
    topic: Mapping[str, str] = field(default_factory=dict)
    consumers: Mapping[str, str] = field(default_factory=dict)
    rate: float = 20
    size: int = 200
    unreachable: str = ""  # the host by which the brokers are told of at a door of their own


PLAIN = Layout()


class Scene:
    """What is running: its servers by id, its clients by name. Whatever logs is in `logs`, by the name of its file."""

    def __init__(self, jars: Path, folder: Path, layout: Layout, runs_s: float) -> None:
        self._jars, self.folder, self._layout, self.runs_s = jars, folder, layout, runs_s
        self.logs: dict[str, Path] = {}
        self.key_store = made_certificate(folder)[0] if layout.secured else None
        self.quorum = list(_quorum(layout))
        self.doors = {id_: self._doors(id_) for id_ in (*BROKERS, *(node.id for node in self.quorum))}
        self.nodes = _nodes(self.quorum)
        self.servers = {node.id: self.server(node) for node in self.nodes}
        self.clients: list[Tool] = []

    @property
    def address(self) -> str:
        """Where clients find the brokers."""
        return ",".join(self.servers[id_].address for id_ in BROKERS)

    def start(self) -> None:
        """Bring up the cluster, the topic and its clients."""
        for server in self.servers.values():
            server.launch()
        for server in self.servers.values():
            server.wait_up(START_WITHIN_S)
        self.topic(TOPIC, **self._layout.topic)
        self.orders = self.producer(PRODUCER)
        self.orders.start(self._layout.rate, self._layout.size)
        self.consumers = [self.consumer(f"shipping-{number}") for number in range(1, self._layout.members + 1)]
        for consumer in self.consumers:
            consumer.start()

    def topic(self, name: str, replicas: int = len(BROKERS), **config: str) -> None:
        """Make a topic of three partitions."""
        topics = Topics(self.address)
        topics.make(PARTITIONS, name, replicas, **config)
        topics.close()

    def cut(self, name: str) -> None:
        """Delete all records that a topic has."""
        topics = Topics(self.address)
        for partition in range(PARTITIONS):
            topics.cut(name, partition, OFFSET_END)
        topics.close()

    def tool(self, name: str, *arguments: str) -> None:
        """Run one of Kafka's command line tools, by the name of its class, and wait until it is done."""
        where = ["--bootstrap-server", self.address]
        command = ["java", "-Xmx128m", "-cp", f"{self._jars}/*", name, *where, *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=120)

    def in_sync(self) -> None:
        """Wait until every replica is up to date."""
        topics = Topics(self.address)
        topics.until(lambda: topics.in_sync(TOPIC, len(BROKERS)))
        topics.close()

    def server(self, node: Node, name: str = "", more: str = "", cluster_id: str = CLUSTER_ID, kafka: str = "") -> Broker:
        """Return a server that is not started; `name` is that of its folder and log, `more` are settings, `kafka` is the
        version where it is not the cluster's."""
        name = name or f"{'controller' if node.roles == CONTROLLER else 'broker'}-{node.id}"
        doors = self.doors[node.id]
        settings = _SETTINGS + doors.settings + self._layout.settings + more
        doors = replace(doors, settings=settings)
        jars = all_jars(kafka) if kafka else self._jars
        made = Broker(jars, self.folder / name, node, self.quorum, doors, cluster_id)
        self.logs[f"{name}.log"] = made.log
        return made

    def producer(self, name: str, address: str = "", topic: str = TOPIC, **settings: str) -> ConsoleProducer:
        """Return a producer that is not started."""
        said = {"client.id": name, **_PRODUCER, **settings}
        return self._known(ConsoleProducer(self._jars, self.folder, name, address or self.address, topic, said))

    def consumer(
        self, name: str, reads: tuple[str, str] = (TOPIC, GROUP), address: str = "", **settings: str
    ) -> ConsoleConsumer:
        """Return a consumer that is not started; `reads` is its topic and its group."""
        said = {"client.id": name, "auto.offset.reset": "earliest", **self._layout.consumers, **settings}
        return self._known(ConsoleConsumer(self._jars, self.folder, name, address or self.address, reads, said))

    def application(self, name: str, does: str, *what: str, **settings: str) -> Program:
        """Return a program of somebody's that is not started; Client.java says what it can do."""
        said = {"bootstrap.servers": self.address, "client.id": name, **settings}
        return self._known(Program(self._jars, self.folder, name, (str(CLIENT), does, "{}", *what), said, CLIENT_LAYOUT))

    def library(self, name: str, does: str, topic: str, number: float, **settings: str) -> Library:
        """Return a client of kafka-python that is not started; library_client.py says what it can do."""
        said = {"bootstrap.servers": self.address, "client.id": name, **settings}
        return self._known(Library(self._jars, self.folder, name, (does, topic, str(number)), said))

    def standalone(self, name: str, *words: str, **settings: str) -> Program:
        """Return a program of Connect's that is not started."""
        return self._known(Program(self._jars, self.folder, name, words, settings, WORKER_LAYOUT))

    def worker(self, name: str = "connect", address: str = "", **settings: str) -> ConnectWorker:
        """Return a Connect worker that is not started."""
        topics = {f"{kind}.storage.replication.factor": str(len(BROKERS)) for kind in ("config", "offset", "status")}
        return self._known(ConnectWorker(self._jars, self.folder, name, address or self.address, {**topics, **settings}))

    def pause(self, id_: int) -> None:
        """Let a server hang: it has no time any more."""
        self._signal(id_, signal.SIGSTOP)

    def wake(self, id_: int) -> None:
        """Let a server go on that hangs."""
        self._signal(id_, signal.SIGCONT)

    def runs(self, seconds: float | None = None) -> None:
        """Let everybody work for a while."""
        time.sleep(self.runs_s if seconds is None else seconds)

    def seen(self, words: str, within_s: float = SEEN_WITHIN_S, times: int = 1) -> None:
        """Wait until the logs hold `words` so many times. Raises TimeoutError."""
        deadline = time.monotonic() + within_s
        while self._occurrences(words) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no log said within {within_s} s: {words}")
            time.sleep(_POLL_S)

    def end(self) -> None:
        """Kill whatever runs."""
        for process in (*self.clients, *self.servers.values()):
            process.kill()

    def leave_logs(self, folder: Path) -> None:
        """Copy the logs as they are now."""
        folder.mkdir()
        for name, log in self.logs.items():
            if log.exists():
                shutil.copyfile(log, folder / name)

    def _signal(self, id_: int, number: signal.Signals) -> None:
        pid = self.servers[id_].pid
        assert pid is not None
        os.kill(pid, number)

    def _known(self, made: _Tool) -> _Tool:
        self.clients.append(made)
        self.logs[made.log.name] = made.log
        return made

    def _doors(self, id_: int) -> Doors:
        if id_ not in BROKERS:
            return NO_DOORS
        if self._layout.unreachable:
            return _told_of_elsewhere(self._layout.unreachable)
        return secured_doors(self.key_store) if self.key_store else NO_DOORS

    def _occurrences(self, words: str) -> int:
        return sum(log.read_text(errors="replace").count(words) for log in self.logs.values() if log.exists())


@contextmanager
def scene(jars: Path, folder: Path, layout: Layout, runs_s: float) -> Iterator[Scene]:
    """Give a cluster at work, which has worked for `runs_s` seconds; end it with the block."""
    with ExitStack() as stack:
        if layout.small_disk:
            stack.enter_context(_small_disk(folder / f"broker-{layout.small_disk}" / "data"))
        made = Scene(jars, folder, layout, runs_s)
        stack.callback(made.end)
        made.start()
        made.seen("Found no committed offset", times=PARTITIONS)
        made.runs()
        yield made


@contextmanager
def _small_disk(at: Path) -> Iterator[None]:
    """Mount a file system of DISK in memory, which only root may."""
    at.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def _told_of_elsewhere(host: str) -> Doors:
    """Return a door that a broker names by `host` to whoever comes in by it."""
    (port,) = free_ports(1)
    return Doors({OUTSIDE: port}, hosts={OUTSIDE: host})


def _quorum(layout: Layout) -> Iterator[Node]:
    ids = range(CONTROLLER_ID, CONTROLLER_ID + layout.controllers) if layout.apart else BROKERS
    for id_ in ids:
        port, controller = free_ports(2)
        yield Node(id_, port, controller, CONTROLLER if layout.apart else BOTH)


def _nodes(quorum: list[Node]) -> list[Node]:
    """Return the nodes of the cluster: the quorum, and the brokers where they are not the quorum."""
    known = {node.id for node in quorum}
    ports = zip(BROKERS, free_ports(len(BROKERS)), strict=True)
    return [Node(id_, port, 0, BROKER) for id_, port in ports if id_ not in known] + quorum
