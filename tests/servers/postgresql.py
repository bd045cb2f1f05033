"""A real PostgreSQL server on loopback, from the package of the distribution: a free port, a folder of its own, a password.

PostgreSQL refuses to run as root: there it runs as the user `postgres`, whom the package makes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg

from tests.servers.broker import free_ports
from tests.servers.ending import Process, kill

PACKAGE = "postgresql"  # of Debian, Ubuntu and Fedora
USER, PASSWORD = "tocsin", "s3cret-of-the-store"
_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=40")
_POLL_S = 0.05
_STORES = count(1)


class NoPostgres(Exception):
    """PostgreSQL is not installed; the message says what is missing."""


class PostgresServer:
    """One server with its files in `folder`. `stop()` ends it as an administrator does, `crash()` as a failure of its machine;
    `start()` brings it up again on the same port."""

    def __init__(self, binaries: Path, folder: Path, settings: Sequence[str] = _FAST) -> None:
        self._binaries, self.folder, self._settings = binaries, folder, settings
        (self.port,) = free_ports(1)
        self._process: Process | None = None

    @property
    def address(self) -> str:
        """Its address without a password."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/postgres"

    @property
    def log(self) -> Path:
        """The file with what it printed."""
        return self.folder / "server.log"

    def create(self) -> None:
        """Make the folder of its data."""
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if (owner := _owner()) is not None:
            for path in (self.folder, password):
                shutil.chown(path, owner, owner)
        options = ("-U", USER, "-A", "scram-sha-256", f"--pwfile={password}", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync")
        command = [self._binaries / "initdb", "-D", self.folder / "data", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, user=owner, group=owner)

    def start(self, within_s: float = 60) -> None:
        """Start it and return once it takes connections. Raises RuntimeError, with what it printed, when it does not."""
        settings = ("listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}")
        command = [
            self._binaries / "postgres",
            "-D",
            self.folder / "data",
            *(part for one in (*settings, *self._settings) for part in ("-c", one)),
        ]
        owner = _owner()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder, user=owner, group=owner
            )
        until = time.monotonic() + within_s
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(psycopg.OperationalError), self.connect():
                return
            time.sleep(_POLL_S)
        kill(self._process)
        raise RuntimeError(f"PostgreSQL did not start:\n{self.log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        """End it, and the connections to it with it."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it at once; it recovers with the next start."""
        self._end(signal.SIGQUIT)

    def _end(self, by: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(by)
            self._process.wait(60)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return a connection of its administrator, each statement of which is committed by itself."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname="postgres", autocommit=True
        )

    def empty_store(self) -> str:
        """Return the address of a store that nobody has used, with the password: a schema of its own."""
        name = f"store_{os.getpid()}_{next(_STORES)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.address.replace('@', f':{PASSWORD}@')}?options=-csearch_path%3D{name}"


@contextmanager
def postgres_server(settings: Sequence[str] = _FAST) -> Iterator[PostgresServer]:
    """Yield a server that runs with `settings`. Raises NoPostgres where none is installed."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="tocsin-postgresql-"))  # that its user can enter, as none of pytest's
    server = PostgresServer(binaries, folder, settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.crash()
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """Return the folder with `initdb` and `postgres`: the newest of the distribution's, else that of the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if folders:
        return folders[-1]
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).parent
    raise NoPostgres(f"its package, {PACKAGE}, is not installed")


def _owner() -> str | None:
    """Return the user that the server runs as; None for that of the tests."""
    return "postgres" if os.geteuid() == 0 else None
