"""One real Kafka broker on loopback: KRaft, combined roles, free ports, a folder of its own."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections import deque
from pathlib import Path

_UP = "Kafka Server started"
_CLUSTER_ID = "dG9jc2luLXRlc3RzLTAwMQ"
_LIMITS = ["-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_LOG4J = """
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=info
rootLogger.appenderRef.c.ref=C
"""
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/data
message.max.bytes=10485760
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=100
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker that is up once it is made; `stop()` ends it, `start()` lets it come back with what it had."""

    def __init__(self, jars: Path, folder: Path) -> None:
        self._classpath, self._folder = f"{jars}/*", folder
        self.port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self._said: deque[str] = deque(maxlen=200)
        (folder / "log4j2.properties").write_text(_LOG4J)
        self._properties = folder / "server.properties"
        self._properties.write_text(_PROPERTIES.format(port=self.port, controller=controller, folder=folder))
        format_ = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._properties)]
        subprocess.run(self._java(*format_, heap="-Xmx128m"), check=True, capture_output=True, timeout=120)
        self.start()

    def start(self, within_s: float = 120) -> None:
        """Start it and return once it takes requests."""
        command = self._java("kafka.Kafka", str(self._properties), heap="-Xmx384m")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        up = threading.Event()
        threading.Thread(target=self._listen, args=(self._process, up), daemon=True).start()
        if not up.wait(within_s) or self._process.poll() is not None:
            self.stop()
            raise RuntimeError("the broker did not start:\n" + "".join(self._said))

    def stop(self) -> None:
        """End it, and be sure."""
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self, process: subprocess.Popen[str], up: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._said.append(line)
                if _UP in line:
                    up.set()
        up.set()  # it is over; `start` sees that

    def _java(self, *arguments: str, heap: str) -> list[str]:
        log = f"-Dlog4j2.configurationFile={self._folder}/log4j2.properties"
        return ["java", heap, *_LIMITS, log, "-cp", self._classpath, *arguments]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
