"""YARN on loopback: a ResourceManager and a NodeManager, on free ports and in a folder of their own, with the local disk as its
file system."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.broker import free_ports
from tests.servers.ending import kill
from tests.servers.hadoop import daemon, hadoop_jars, metric, write_settings
from tests.servers.spark_cluster import HOME, until

_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_EXECUTOR = b"org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"


class Yarn:
    """A running YARN; `folder` has its configuration (HADOOP_CONF_DIR)."""

    master = "yarn"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def conf(self) -> Mapping[str, str]:
        """Return what a configuration needs for it under `spark.conf`. The jars of Spark are at the same place everywhere."""
        return {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "640m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.yarn.am.memory": "256m",
            "spark.yarn.jars": f"local:{HOME}/jars/*",
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
        }

    def executors(self) -> list[int]:
        """Return the processes of all executors in its containers."""
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if self._is_executor(entry)]

    def _is_executor(self, process: Path) -> bool:
        with suppress(OSError):  # it has ended
            return process.joinpath("cwd").readlink().is_relative_to(self.folder) and _EXECUTOR in process.joinpath(
                "cmdline"
            ).read_bytes().split(b"\0")
        return False


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """Give a running YARN; end it with the block. Raises NoJars."""
    libs = hadoop_jars()
    folder.mkdir(parents=True)
    ports = free_ports(8)
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    pages = ports[4]
    settings = {f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=False)} | {
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": f"127.0.0.1:{ports[5]}",
        "yarn.nodemanager.localizer.address": f"127.0.0.1:{ports[6]}",
        "yarn.nodemanager.webapp.address": f"127.0.0.1:{ports[7]}",
        "yarn.nodemanager.local-dirs": f"{folder}/local",
        "yarn.nodemanager.log-dirs": f"{folder}/logs",
        "yarn.nodemanager.resource.memory-mb": "6144",
        "yarn.nodemanager.resource.cpu-vcores": "4",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME",
        "yarn.scheduler.minimum-allocation-mb": "256",
    }
    write_settings(folder, "yarn-site.xml", settings)
    write_settings(folder, "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": f"{folder}/tmp"})
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for kind in (_RESOURCE_MANAGER, _NODE_MANAGER):
            processes.append(daemon(folder, libs, kind))
        until(lambda: metric(pages, "ResourceManager", "ClusterMetrics", "NumActiveNMs") == 1, "YARN")
        yield Yarn(folder)
    finally:
        for process in processes:
            kill(process)
