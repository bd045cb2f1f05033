"""`tocsin run` on a Spark cluster, as a process of its own, and what it is to find."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml
from kafka import KafkaProducer
from msgspec import Struct

from engine.model.incidents import Incident
from engine.pipeline import replay
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.hdfs import hdfs
from tests.servers.postgresql import PASSWORD
from tests.servers.s3 import KEYS, s3
from tests.servers.shipping import shipped
from tests.servers.spark_cluster import SECRET, SparkCluster, until
from tests.servers.topics import Topics
from tests.servers.yarn import Yarn
from tests.spark.finals import STORIES, finals, reference
from tests.spark.test_run import GREETING

ROOT = Path(__file__).parents[2]
SILENCE = next(story for story in STORIES if story.name.startswith("4-"))
HEADING = re.compile(r"^ ?(?:CRITICAL|HIGH|MEDIUM|LOW|INFO)  \S", re.MULTILINE)  # of a message on the terminal
WITHIN_S = 900
SECRETS = {"TOCSIN_SPARK_SECRET": SECRET, "STORE_PASSWORD": PASSWORD, **KEYS}

Process = subprocess.Popen[bytes]


class Place(Struct, frozen=True):
    """Where a run is started, and what it is to find."""

    folder: Path
    expected: list[Any]
    address: str = ""  # of a store on a server, with its password

    @property
    def store(self) -> Store:
        """Its store; the caller closes it."""
        return Store.open(self.address or f"sqlite:///{self.folder}/state.db")

    def configure(self, **spark: object) -> None:
        """Change what is under `spark` in the configuration."""
        path = self.folder / "tocsin.yml"
        config = yaml.safe_load(path.read_text())
        config["spark"] |= spark
        path.write_text(yaml.safe_dump(config))

    def command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "engine.cli.main", "run", "-c", str(self.folder / "tocsin.yml"), *more]

    @contextmanager
    def running(self, *more: str, command: list[str] | None = None) -> Iterator[Process]:
        """Start a run in a process group of its own; nothing of it is left behind."""
        environment = {**os.environ, **SECRETS, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        with (
            (self.folder / "out").open("ab") as out,
            (self.folder / "err").open("ab") as err,
            subprocess.Popen(
                command or self.command(*more), stdout=out, stderr=err, env=environment, cwd=self.folder, start_new_session=True
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def said(self) -> str:
        return (self.folder / "err").read_text() + self.log()[-4000:]

    def log(self) -> str:
        path = self.folder / "state.checkpoint" / "spark.log"
        return path.read_text() if path.exists() else ""

    def stored(self) -> int:
        """Return how many batches are in the store."""
        if not self.address and not (self.folder / "state.db").exists():
            return 0
        with closing(self.store) as store:
            return store.batches()

    def until_stored(self, batches: int, process: Process) -> None:
        def holds() -> bool:
            assert process.poll() is None, self.said()
            return self.stored() >= batches

        until(holds, f"batch {batches}", WITHIN_S)

    def until_said(self, sentence: str, process: Process) -> None:
        def holds() -> bool:
            assert process.poll() is None, self.said()
            return sentence in (self.folder / "err").read_text()

        until(holds, sentence, WITHIN_S)

    def incidents(self) -> Sequence[Incident]:
        with closing(self.store) as store:
            return list(store.incidents())

    def check(self) -> None:
        """Check that all incidents were found, and that there was one message for each."""
        incidents = self.incidents()
        assert finals(incidents) == self.expected
        messages = (self.folder / "out").read_text()
        live = [incident for incident in incidents if incident.status not in ("merged", "retracted") and not incident.pending]
        assert len(HEADING.findall(messages)) == len(live), messages


def placed(
    folder: Path, cluster: SparkCluster | Yarn, topics: Topics, stories: list[Path], address: str = "", **spark: object
) -> Place:
    """Ship `stories`, each into a topic of two partitions, and write a configuration that reads them on the cluster. That of a
    silence stays in files, which the driver reads: its reference has the progress of each file, a topic that of partitions.

    Args:
        address: of a store on a server, with its password; empty for one in the folder.
        spark: what is under `spark` in the configuration beside what the cluster needs.
    """
    sources, expected = [], list[Any]()
    with closing(KafkaProducer(bootstrap_servers=topics.address)) as producer:
        for story in stories:
            where: dict[str, Any] = {"type": "files", "paths": [str(story)]}
            if story == SILENCE:
                expected += reference(story)
            else:
                topic = topics.make(partitions=2)
                lines = list(shipped(producer, topic, story))
                expected += finals({incident.id: incident for incident in replay(lines, plan())}.values())
                where = {"type": "kafka", "bootstrap_servers": topics.address, "topics": [topic]}
            sources.append({**where, "labels": {"cluster": story.name}, "timezone": "Asia/Seoul", "start": "earliest"})
    _write(folder, cluster, {"sources": sources}, address, spark)
    return Place(folder, sorted(expected), address)


def greeted(
    folder: Path, cluster: SparkCluster | Yarn, topics: Topics, names: Sequence[str], address: str = "", **spark: object
) -> Place:
    """Write greetings into a topic, and a configuration that reads it by one small rule, with which all starts quickly: each
    name is an incident. The arguments are those of `placed`."""
    topic = topics.make()
    topics.ship(topic, "app.log", (f"[2024-01-01 10:00:00,000] INFO hello {name}" for name in names))
    (folder / "rules").mkdir()
    (folder / "rules" / "hello.yml").write_text(GREETING.format(id="hello"))
    source = {"type": "kafka", "bootstrap_servers": topics.address, "topics": [topic], "labels": {"cluster": "greetings"}}
    _write(folder, cluster, {"rules": ["rules"], "sources": [{**source, "start": "earliest"}]}, address, spark)
    return Place(folder, [], address)


def _write(
    folder: Path, cluster: SparkCluster | Yarn, config: Mapping[str, Any], address: str, spark: Mapping[str, object]
) -> None:
    """Write `config` with what is the same for all runs."""
    settings = {"master": cluster.master, "conf": dict(cluster.conf()), "cores": 2, "trigger": "200ms", **spark}
    of_server = {"url": address.replace(f":{PASSWORD}@", "@"), "password": "env:STORE_PASSWORD"}
    same: Mapping[str, Any] = {
        "route": {"receiver": "terminal", "group_wait": "0s"},
        "notify_max_age": "0s",
        "store": of_server if address else "sqlite:///state.db",
        "spark": settings,
    }
    (folder / "tocsin.yml").write_text(yaml.safe_dump({**config, **same}))


class Shared(Struct, frozen=True):
    """Where a checkpoint may be that all machines share.

    Attributes:
        checkpoint: its folder or URL.
        conf: what it needs under `spark.conf`.
        folder: its files, where they can be looked at.
    """

    checkpoint: str
    conf: Mapping[str, str] = {}
    folder: Path | None = None


@contextmanager
def shared_place(kind: str, folder: Path) -> Iterator[Shared]:
    """Give a place in a `folder`, in `hdfs` or in `s3`; end its server with the block. Raises NoJars."""
    if kind == "hdfs":
        with hdfs(folder / "hdfs") as url:
            yield Shared(f"{url}/tocsin")
    elif kind == "s3":
        with s3(folder / "s3") as bucket:
            yield Shared(bucket.url, bucket.conf, bucket.folder / "checkpoint")
    else:
        yield Shared(str(folder / "shared"), folder=folder / "shared")
