"""Real Kafka brokers on loopback: KRaft, combined roles, free ports, a folder each with its data and its `server.log`."""

from __future__ import annotations

import random
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from tests.servers.ending import end, kill
from tests.servers.logfile import logging_to

BOTH, BROKER, CONTROLLER = "broker,controller", "broker", "controller"
_UP = "Kafka Server started"
CLUSTER_ID = "dG9jc2luLXRlc3RzLTAwMQ"
_LIMITS = ["-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
_LAYOUT = "[%d] %p %m (%c)%n"
_PROPERTIES = """
process.roles={roles}
node.id={id}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
{listeners}
log.dirs={folder}/data
message.max.bytes=10485760
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=100
offsets.topic.num.partitions=1
offsets.topic.replication.factor={copies}
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
{settings}
"""


class Node(Struct, frozen=True):
    """A server's id and its two ports: `port` for clients and brokers, `controller` for the quorum; and what it is."""

    id: int
    port: int
    controller: int
    roles: str = BOTH


class Doors(Struct, frozen=True):
    """Listeners besides the plain one: name -> port, the settings they need, and SCRAM credentials (`SCRAM-SHA-512=[...]`).

    `hosts`: name -> the host by which clients are told of it, where that is not the one it listens on.
    """

    ports: Mapping[str, int] = field(default_factory=dict)
    settings: str = ""
    credentials: tuple[str, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)


NO_DOORS = Doors()
NO_SETTINGS: Mapping[int, str] = {}


class Broker:
    """A broker of a cluster. `start()` brings it up with what it had, `stop()` ends it, `kill()` gives it no time to say so.

    A folder that was formatted before stays as it is. What is added to `properties` counts from the next start on.
    """

    def __init__(
        self,
        jars: Path,
        folder: Path,
        node: Node,
        quorum: Sequence[Node],
        doors: Doors,
        cluster_id: str = CLUSTER_ID,
    ) -> None:
        self._classpath, self._folder = f"{jars}/*", folder
        self.id, self.port = node.id, node.port
        self.address = f"127.0.0.1:{self.port}"
        self._said: deque[str] = deque(maxlen=200)
        self._up = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._logging = logging_to(self.log, _LAYOUT, folder / "server", shown=True)
        self.properties = folder / "server.properties"
        self.properties.write_text(_properties(folder, node, quorum, doors))
        scram = [word for credential in doors.credentials for word in ("--add-scram", credential)]
        format_ = ["kafka.tools.StorageTool", "format", "-g", "-t", cluster_id, "-c", str(self.properties), *scram]
        subprocess.run(self._java(*format_, heap="-Xmx128m"), check=True, capture_output=True, timeout=120)

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> Path:
        """The file that it logs to."""
        return self._folder / "server.log"

    def start(self, within_s: float = 120) -> None:
        """Start it and return once it takes requests."""
        self.launch()
        self.wait_up(within_s)

    def launch(self) -> None:
        """Start it and return at once: the first of several brokers is not up before a second one is there."""
        command = self._java("kafka.Kafka", str(self.properties), heap="-Xmx384m")
        self._up = threading.Event()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._listen, args=(self._process, self._up), daemon=True).start()

    def wait_up(self, within_s: float = 120) -> None:
        """Return once it takes requests. Raises RuntimeError, with what it said, when it does not come to that."""
        if not self._up.wait(within_s) or self._process is None or self._process.poll() is not None:
            self.stop()
            raise RuntimeError("the broker did not start:\n" + "".join(self._said))

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End it, and be sure."""
        end(self._process)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        kill(self._process)

    def _listen(self, process: subprocess.Popen[str], up: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._said.append(line)
                if _UP in line:
                    up.set()
        up.set()  # it is over; `start` sees that

    def _java(self, *arguments: str, heap: str) -> list[str]:
        return ["java", heap, *_LIMITS, *self._logging, "-cp", self._classpath, *arguments]


@contextmanager
def brokers(
    jars: Path, folder: Path, count: int = 1, doors: Doors = NO_DOORS, own: Mapping[int, str] = NO_SETTINGS
) -> Iterator[list[Broker]]:
    """Give a running cluster of `count` brokers with the ids 1, 2, ..., each in a folder of its own; end it with the block.

    `own`: settings that one broker has, by id.
    """
    ports = free_ports(2 * count)
    quorum = [Node(id_, ports[2 * id_ - 2], ports[2 * id_ - 1]) for id_ in range(1, count + 1)]
    made = [
        Broker(jars, folder / f"broker-{node.id}", node, quorum, replace(doors, settings=doors.settings + own.get(node.id, "")))
        for node in quorum
    ]
    try:
        for broker in made:
            broker.launch()
        for broker in made:
            broker.wait_up()
        yield made
    finally:
        for broker in made:
            broker.kill()  # nobody comes back to what they hold, and the last ones cannot end tidily without a quorum


def _properties(folder: Path, node: Node, quorum: Sequence[Node], doors: Doors) -> str:
    voters = ",".join(f"{each.id}@127.0.0.1:{each.controller}" for each in quorum)
    said = {"listeners": _listeners(node, doors), "settings": doors.settings}
    return _PROPERTIES.format(id=node.id, roles=node.roles, **said, voters=voters, folder=folder, copies=min(3, len(quorum)))


def _listeners(node: Node, doors: Doors) -> str:
    """Return the settings of what a server listens on: a controller for the quorum, a broker for everyone at all its doors."""
    quorum = f"CONTROLLER://127.0.0.1:{node.controller}"
    ports = {"PLAINTEXT": node.port, **doors.ports}
    everyone = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    told = ",".join(f"{name}://{doors.hosts.get(name, '127.0.0.1')}:{port}" for name, port in ports.items())
    if node.roles == CONTROLLER:
        return f"listeners={quorum}"
    heard = everyone if node.roles == BROKER else f"{everyone},{quorum}"
    return f"listeners={heard}\nadvertised.listeners={told}\ninter.broker.listener.name=PLAINTEXT"


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, below those that Linux gives to connections: Java takes seconds to get to them."""
    found = set[int]()
    while len(found) < count:
        port = random.randint(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return sorted(found)
