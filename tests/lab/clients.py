"""Kafka's own console clients and a Connect worker as processes of their own, each with the log that such a process leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.request import Request, urlopen

from tests.servers.broker import free_ports
from tests.servers.ending import end, kill
from tests.servers.logfile import logging_to

_LIMITS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
CLIENT_LAYOUT = "[%d] %p %m (%c)%n"
WORKER_LAYOUT = "[%d] %p %X{connector.context}%m (%c:%L)%n"
_WORKER = {
    "group.id": "connect-lab",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "plugin.discovery": "service_load",  # looking into every jar takes a minute on a busy machine
}
_NEW_PRODUCER = ("org.apache.kafka.tools.ConsoleProducer", "--command-config")
_OLD_PRODUCER = ("kafka.tools.ConsoleProducer", "--producer.config")
_PIPE_BYTES = 4096
CLIENT = Path(__file__).parent / "Client.java"
_LIBRARY_CLIENT = Path(__file__).parent / "library_client.py"
REQUEST_WITHIN_S = 180


class Tool:
    """A Java program of Kafka's with settings of its own; it logs to `<name>.log`."""

    heap = "-Xmx128m"

    def __init__(self, jars: Path, folder: Path, name: str, settings: Mapping[str, str], layout: str = CLIENT_LAYOUT) -> None:
        self.log = folder / f"{name}.log"
        self.settings = folder / f"{name}.properties"
        self.settings.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._java = [*_LIMITS, *logging_to(self.log, layout, folder / name), "-cp", f"{jars}/*"]
        self._process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End it as an operator does, and be sure."""
        end(self._process, within_s=30)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        kill(self._process)

    def pause(self) -> None:
        """Let it hang: it has no time any more, until `wake`."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def _run(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(["java", self.heap, *self._java, *arguments], **pipes, pipesize=_PIPE_BYTES)  # type: ignore[call-overload, no-any-return]


class ConsoleProducer(Tool):
    """kafka-console-producer: sends `rate` small records a second from its start on, and what it is told besides."""

    def __init__(self, jars: Path, folder: Path, name: str, address: str, topic: str, settings: Mapping[str, str]) -> None:
        super().__init__(jars, folder, name, settings)
        program, option = _NEW_PRODUCER if _is_new(jars) else _OLD_PRODUCER
        self._arguments = [program, "--bootstrap-server", address, "--topic", topic, option, str(self.settings)]

    def start(self, rate: float = 20, size: int = 200, record: str = '{{"order":{}}}') -> None:
        """Start it and return at once. `record` is what it sends, with its number, filled up to `size`."""
        self._process = self._run(self._arguments)
        records = (record.format(number).ljust(size) for number in count())
        threading.Thread(target=self._feed, args=(self._process, records, 1 / rate), daemon=True).start()

    def send(self, text: str) -> None:
        """Send one record more."""
        self._write(self._process, f"{text}\n")

    def _feed(self, process: subprocess.Popen[bytes], records: Iterator[str], pause_s: float) -> None:
        for record in records:
            if process.poll() is not None or not self._write(process, f"{record}\n"):
                break
            time.sleep(pause_s)
        _close(process)

    def _write(self, process: subprocess.Popen[bytes] | None, text: str) -> bool:
        """Hand a line to its standard input; False once it has ended."""
        assert process is not None
        assert process.stdin is not None
        try:
            process.stdin.write(text.encode())
            process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True


class ConsoleConsumer(Tool):
    """kafka-console-consumer: what it prints is read as it comes; not while `dawdling` is set, which blocks it."""

    def __init__(
        self, jars: Path, folder: Path, name: str, address: str, reads: tuple[str, str], settings: Mapping[str, str]
    ) -> None:
        """`reads` is the topic and the group in which it is read."""
        super().__init__(jars, folder, name, settings)
        topic, group = reads
        option = "--command-config" if _is_new(jars) else "--consumer.config"
        where = ["--bootstrap-server", address, "--topic", topic, "--group", group, option, str(self.settings)]
        self._arguments = ["org.apache.kafka.tools.consumer.ConsoleConsumer", *where]
        self.dawdling = threading.Event()

    def start(self) -> None:
        """Start it and return at once."""
        self._process = self._run(self._arguments)
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while process.stdout.readline():
            while self.dawdling.is_set() and process.poll() is None:
                time.sleep(0.1)
        _close(process)


class Program(Tool):
    """A program that nobody talks to. In its words `{}` stands for the file with its settings."""

    def __init__(
        self,
        jars: Path,
        folder: Path,
        name: str,
        words: Sequence[str],
        settings: Mapping[str, str],
        layout: str = CLIENT_LAYOUT,
    ) -> None:
        super().__init__(jars, folder, name, settings, layout)
        self._arguments = [str(self.settings) if word == "{}" else word for word in words]

    def start(self) -> None:
        """Start it and return at once."""
        self._process = self._run(self._arguments)
        threading.Thread(target=self._process.communicate, daemon=True).start()


class Library(Tool):
    """A client of kafka-python; library_client.py says what it can do. Its log is what it prints."""

    def __init__(self, jars: Path, folder: Path, name: str, does: Sequence[str], settings: Mapping[str, str]) -> None:
        """`does` is what it does, with which topic and which number."""
        super().__init__(jars, folder, name, settings)
        what, topic, number = does
        self._command = [sys.executable, str(_LIBRARY_CLIENT), what, str(self.settings), topic, number]

    def start(self) -> None:
        """Start it and return at once."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)


class ConnectWorker(Tool):
    """A distributed Connect worker, for what is in the jars: the connectors for files."""

    heap = "-Xmx384m"

    def __init__(self, jars: Path, folder: Path, name: str, address: str, settings: Mapping[str, str]) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        (folder / "plugins").mkdir(exist_ok=True)
        where = {"bootstrap.servers": address, "listeners": self.url, "plugin.path": str(folder / "plugins")}
        super().__init__(jars, folder, name, {**_WORKER, **where, **settings}, WORKER_LAYOUT)

    def start(self) -> None:
        """Start it and return at once: `create` waits until it answers."""
        self._process = self._run(["org.apache.kafka.connect.cli.ConnectDistributed", str(self.settings)])
        threading.Thread(target=self._process.communicate, daemon=True).start()

    def create(self, connector: str, settings: Mapping[str, str]) -> None:
        """Create a connector, or give it other settings. Raises TimeoutError."""
        self.ask("PUT", f"/connectors/{connector}/config", settings)

    def ask(self, method: str, path: str, said: Mapping[str, str] | None = None) -> None:
        """Ask by REST, again and again until the worker has joined its group. Raises TimeoutError."""
        deadline = time.monotonic() + REQUEST_WITHIN_S
        while not self._done(method, path, said):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the worker did not take {method} {path} within {REQUEST_WITHIN_S} s")
            time.sleep(1)

    def _done(self, method: str, path: str, said: Mapping[str, str] | None = None) -> bool:
        """Ask by REST once; return whether it was done."""
        body = None if said is None else json.dumps(said).encode()
        request = Request(f"{self.url}{path}", body, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=10):
                return True
        except OSError:
            return False


def _is_new(jars: Path) -> bool:
    """Tell whether these are the jars of a Kafka from 4.0 on."""
    return not any(jars.glob("kafka-clients-3.*.jar"))


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a process that has ended, or has closed them."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written yet has no reader
                pipe.close()
