"""A standalone Spark cluster on loopback: a master and workers from pyspark's own jars, each worker at an address and in a
folder of its own. Executors are its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark

from tests.servers.broker import free_ports
from tests.servers.ending import kill

HOME = Path(pyspark.__file__).parent
WITHIN_S = 120
SECRET = "a-secret-of-the-tests"
EXECUTOR = "CoarseGrainedExecutorBackend"


class SparkCluster:
    """A master and workers of one core each. `start()` brings up what does not run.

    Args:
        around: the command that each worker is started by, for a place where it sees other files.
    """

    def __init__(self, folder: Path, workers: int = 2, around: tuple[str, ...] = ()) -> None:
        self._folder, self._around = folder, around
        self.port, self._pages, *self._worker_pages = free_ports(2 + workers)
        self.master_process: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * workers

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def conf(self) -> Mapping[str, str]:
        """Return what a configuration needs for it under `spark.conf`."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.authenticate.secret": "env:TOCSIN_SPARK_SECRET",
        }

    def start(self) -> None:
        """Start the master and all workers that do not run, and return when all workers are known to the master."""
        if self.master_process is None:
            self.start_master()
        for number, process in enumerate(self.workers):
            if process is None or process.poll() is not None:
                self.workers[number] = self._worker(number)
        until(lambda: self.count("workers") == len(self.workers), "the workers of Spark")

    def start_master(self) -> None:
        recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self._folder}/recovery"
        address = ["--host", "127.0.0.1", "--port", self.port, "--webui-port", self._pages]
        self.master_process = self._daemon("Master", "master", "127.0.0.1", recovery, address)

    def state(self) -> Mapping[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._pages}/json/", timeout=10) as answer:
            state: Mapping[str, Any] = json.load(answer)
            return state

    def count(self, kind: str) -> int:
        """Return how many `workers` are alive, or `activeapps` are known, as the master sees it; 0 while it does not answer."""
        with suppress(OSError):
            return sum(entry["state"] in ("ALIVE", "RUNNING") for entry in self.state()[kind])
        return 0

    def executors(self) -> list[int]:
        """Return the processes of all executors at its workers."""
        return [pid for process in self.workers if process is not None for pid in _executors_of(process.pid)]

    def kill_executor(self) -> None:
        """End an executor as `kill -9` does."""
        os.kill(self.executors()[0], signal.SIGKILL)

    def kill_worker(self, number: int = 0) -> None:
        kill(self.workers[number])

    def kill_master(self) -> None:
        kill(self.master_process)
        self.master_process = None

    def close(self) -> None:
        executors = self.executors()
        for process in (self.master_process, *self.workers):
            kill(process)
        for pid in executors:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ran_at(self) -> set[int]:
        """Return the numbers of the workers that had an executor so far."""
        return {number for number in range(len(self.workers)) if any((self._folder / f"worker-{number}").glob("work/app-*/*"))}

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        folder, host = self._folder / f"worker-{number}", f"127.0.0.{number + 2}"
        size = ["--cores", "1", "--memory", "1g", "--work-dir", folder / "work"]
        address = ["--host", host, "--webui-port", self._worker_pages[number], self.master]
        return self._daemon("Worker", folder.name, host, "", [*size, *address], self._around)

    def _daemon(
        self, kind: str, name: str, host: str, options: str, arguments: list[object], around: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_PUBLIC_DNS": host,
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_DAEMON_JAVA_OPTS": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {options}"
            f" -Dspark.authenticate=true -Dspark.authenticate.secret={SECRET} -Dspark.network.crypto.enabled=true",
        }
        for name_of_ours in ("PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONSAFEPATH"):
            environment.pop(name_of_ours, None)  # a worker knows nothing of the driver
        command = [*around, str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        log = (folder / "log").open("ab")
        with log:
            return subprocess.Popen([*command, *map(str, arguments)], stdout=log, stderr=log, env=environment, cwd=folder)


@contextmanager
def spark_cluster(folder: Path, around: tuple[str, ...] = (), workers: int = 2) -> Iterator[SparkCluster]:
    """Give a running cluster; end it with the block."""
    cluster = SparkCluster(folder, workers, around)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def until(holds: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
    """Look again and again until it `holds`: what a cluster does by itself tells nobody that it is done."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come within {within_s:.0f} s"
        time.sleep(0.5)


def _executors_of(worker: int) -> Iterator[int]:
    """Yield the executors that a worker has started."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):  # it has ended
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == worker and EXECUTOR in (entry / "cmdline").read_text():
                yield int(entry.name)
