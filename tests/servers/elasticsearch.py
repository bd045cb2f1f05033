"""A real Elasticsearch node on loopback: a free port, a folder with its data and what it prints, a bounded heap."""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.servers.broker import free_ports
from tests.servers.ending import Process, end, kill
from tests.servers.search_home import NEW, SearchHome

_HEAP = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
_NATIVE = ("-Dorg.elasticsearch.nativeaccess.enableVectorLibrary=false",)
_SETTINGS = {
    "node.name": "n1",
    "cluster.name": "tocsin-tests",
    "network.host": "127.0.0.1",
    "transport.port": "0",
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "action.destructive_requires_name": "false",
}
_POLL_S = 0.1


class ElasticsearchNode:
    """One node. `start()` brings it up with what it had, `stop()` ends it, `kill()` gives it no time to say so.

    The port stays the same over restarts. `settings` are added to Elasticsearch's own, and count from the next start on.
    """

    def __init__(self, home: SearchHome, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.home, self.folder = home, folder
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = dict(settings or {})
        self.headers: dict[str, str] = {}
        self.context: ssl.SSLContext | None = None
        self._process: Process | None = None
        (folder / "tmp").mkdir(parents=True, exist_ok=True)

    @property
    def version(self) -> str:
        """The number of its version: `9.5.3`."""
        return self.home.version.number

    @property
    def pid(self) -> int | None:
        """The process, once there is one."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> Path:
        """The file with what it printed."""
        return self.folder / "elasticsearch.log"

    def start(self, within_s: float = 180) -> None:
        """Start it and return once it takes requests. Raises RuntimeError, with what it said, when it does not come to that."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command(), stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)
        until = time.monotonic() + within_s
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(OSError, ValueError):
                if self.call("GET", "/_cluster/health").get("status") in ("green", "yellow"):
                    self._forget_replicas()
                    return
            time.sleep(_POLL_S)
        self.kill()
        raise RuntimeError(f"Elasticsearch did not start:\n{self.log.read_text(errors='replace')[-3000:]}")

    def stop(self) -> None:
        """End it, and be sure."""
        end(self._process)

    def kill(self) -> None:
        """End it as `kill -9` does."""
        kill(self._process)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask it directly and return the JSON of its answer; `body` is sent as JSON, a list of values as lines of it. Raises
        OSError (urllib's HTTPError for an answer that refuses)."""
        lines = "".join(f"{json.dumps(value)}\n" for value in body) if isinstance(body, list) else json.dumps(body)
        kind = "application/x-ndjson" if isinstance(body, list) else "application/json"
        data = None if body is None else lines.encode()
        headers = {"Content-Type": kind, **self.headers}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60, context=self.context) as response:
            return json.loads(response.read() or b"null")

    def _forget_replicas(self) -> None:
        """Let new indices have no copies: one node has no place for them, and nothing would ever be green. A template with a
        higher priority takes the place of this one."""
        template = {"index_patterns": ["*"], "priority": 0, "template": {"settings": {"number_of_replicas": 0}}}
        self.call("PUT", "/_index_template/tests-no-replicas", template)

    def _command(self) -> list[str]:
        home = self.home.folder
        paths = {f"path.{name}": str(self.folder / name) for name in ("data", "logs", "repo")}
        own = {**_SETTINGS, **paths, "http.port": str(self.port), **self.settings}
        settings = [f"{key}={value}" for key, value in own.items()]
        java = [str(self.home.java), *_HEAP, *_NATIVE, f"-Djava.io.tmpdir={self.folder / 'tmp'}"]
        native = [f"-Des.nativelibs.path={home / 'native'}"]
        if self.home.version is NEW:
            native.append("--enable-native-access=ALL-UNNAMED")
        return [*java, *native, "-cp", f"{home / 'classes'}:{home / 'cp'}/*", self.home.version.main, str(home), *settings]


@contextmanager
def elasticsearch_node(
    home: SearchHome, folder: Path, settings: Mapping[str, str] | None = None
) -> Iterator[ElasticsearchNode]:
    """Give a running node with its data in `folder`; end it with the block."""
    node = ElasticsearchNode(home, folder, settings)
    try:
        node.start()
        yield node
    finally:
        node.kill()  # nobody comes back to what it holds
