"""`tocsin run` on a Spark cluster, over a real Kafka broker: executors, workers, the driver and the master may be killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaProducer
from msgspec import Struct

from engine.pipeline import replay
from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.plans import planned
from engine.store import Store
from tests.rulepack.playing import plan
from tests.servers.broker import free_ports
from tests.servers.hdfs import hdfs
from tests.servers.jars import NoJars
from tests.servers.shipping import shipped
from tests.servers.spark_cluster import HOME, SECRET, SparkCluster, spark_cluster, until
from tests.servers.topics import Topics
from tests.servers.yarn import Yarn
from tests.spark.finals import STORIES, finals, reference

ROOT = Path(__file__).parents[2]
SUBMITTED = ROOT / "engine" / "cli" / "submit" / "tocsin_submit.py"
SILENCE = next(story for story in STORIES if story.name.startswith("4-"))
HEADING = re.compile(r"^ ?(?:CRITICAL|HIGH|MEDIUM|LOW|INFO)  \S", re.MULTILINE)  # of a message on the terminal
WITHIN_S = 540

Process = subprocess.Popen[bytes]

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cluster(runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark-cluster")) as running:
        yield running


class Place(Struct, frozen=True):
    """Where a run is started, and what it is to find."""

    folder: Path
    expected: list[Any]

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
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "TOCSIN_SPARK_SECRET": SECRET}
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
        if not (self.folder / "state.db").exists():
            return 0
        with closing(Store.open(f"sqlite:///{self.folder}/state.db")) as store:
            return store.batches()

    def until_stored(self, batches: int, process: Process) -> None:
        def holds() -> bool:
            assert process.poll() is None, self.said()
            return self.stored() >= batches

        until(holds, f"batch {batches}", WITHIN_S)

    def check(self) -> None:
        """Check that all incidents were found, and that there was one message for each."""
        with closing(Store.open(f"sqlite:///{self.folder}/state.db")) as store:
            incidents = list(store.incidents())
        assert finals(incidents) == self.expected
        messages = (self.folder / "out").read_text()
        live = [incident for incident in incidents if incident.status not in ("merged", "retracted") and not incident.pending]
        assert len(HEADING.findall(messages)) == len(live), messages


def placed(folder: Path, cluster: SparkCluster | Yarn, topics: Topics, stories: list[Path], **spark: object) -> Place:
    """Ship `stories`, each into a topic of two partitions, and write a configuration that reads them on the cluster. That of a
    silence stays in files, which the driver reads: its reference has the progress of each file, a topic that of partitions."""
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
    settings = {"master": cluster.master, "conf": dict(cluster.conf()), "cores": 2, "trigger": "200ms", **spark}
    config: Mapping[str, Any] = {
        "sources": sources,
        "route": {"receiver": "terminal", "group_wait": "0s"},
        "notify_max_age": "0s",
        "store": "sqlite:///state.db",
        "spark": settings,
    }
    (folder / "tocsin.yml").write_text(yaml.safe_dump(config))
    return Place(folder, sorted(expected))


@pytest.mark.long
def test_an_executor_is_killed_and_the_stories_end_as_in_a_scan(cluster: SparkCluster, topics: Topics, tmp_path: Path) -> None:
    place = placed(tmp_path, cluster, topics, STORIES, batch_lines=40)
    with place.running("--once") as process:
        place.until_stored(2, process)
        cluster.kill_executor()
        assert process.wait(WITHIN_S) == 1, place.said()
    place.check()
    assert len(place.expected) == 9
    assert cluster.ran_at() == {0, 1}
    assert len(list((tmp_path / "state.checkpoint" / "query" / "state" / "0").glob("[0-9]*"))) == 2
    assert planned(LocalCheckpoint(tmp_path / "state.checkpoint" / "query")) > 2


@pytest.fixture(params=["folder", "hdfs"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a checkpoint may be that all machines share."""
    if request.param == "folder":
        yield str(tmp_path / "shared")
        return
    try:
        with hdfs(tmp_path / "hdfs") as url:
            yield f"{url}/tocsin"
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"HDFS cannot be had: {missing}")


@pytest.mark.long
def test_worker_and_driver_are_killed_and_another_machine_goes_on_with_the_checkpoint(
    cluster: SparkCluster, topics: Topics, tmp_path: Path, checkpoint: str
) -> None:
    place = placed(tmp_path, cluster, topics, STORIES, batch_lines=20, checkpoint=checkpoint)
    with place.running("--once") as process:
        place.until_stored(2, process)
        cluster.kill_worker()
        place.until_stored(4, process)
        os.killpg(process.pid, signal.SIGKILL)
    done = place.stored()
    cluster.start()
    shutil.rmtree(tmp_path / ".tocsin", ignore_errors=True)
    shutil.rmtree(tmp_path / "state.checkpoint", ignore_errors=True)  # what a machine has to itself
    with place.running("--once") as process:
        assert process.wait(WITHIN_S) in (0, 1), place.said()
    assert place.stored() > done, "it was killed after its last batch"
    place.check()


@pytest.mark.long
def test_a_run_outlives_its_master_and_a_master_that_comes_back_knows_it(
    cluster: SparkCluster, topics: Topics, tmp_path: Path
) -> None:
    place = placed(tmp_path, cluster, topics, STORIES[:3], batch_lines=20)
    with place.running("--once") as process:
        place.until_stored(1, process)
        cluster.kill_master()
        place.until_stored(2, process)
        cluster.start()
        assert process.wait(WITHIN_S) == 1, place.said()
    place.check()


@pytest.mark.long
def test_spark_submit_decides_the_master(cluster: SparkCluster, topics: Topics, tmp_path: Path) -> None:
    place = placed(tmp_path, cluster, topics, STORIES[:2])
    place.configure(master="local[1]")
    settings = [word for name, value in cluster.conf().items() for word in ("--conf", f"{name}={value}")]
    settings = [word.replace("env:TOCSIN_SPARK_SECRET", SECRET) for word in settings]
    submit = [str(HOME / "bin" / "spark-submit"), "--master", cluster.master, *settings, str(SUBMITTED)]
    with place.running(command=[*submit, "run", "-c", str(tmp_path / "tocsin.yml"), "--once"]) as process:
        until(lambda: cluster.count("activeapps") == 1 or process.poll() is not None, "the application", WITHIN_S)
        assert process.wait(WITHIN_S) == 1, place.said()
    said = (tmp_path / "out").read_text()  # where spark-submit passes on both
    assert f"the master is that of spark-submit, {cluster.master}, and not local[1] of the configuration" in said
    place.check()


@pytest.mark.long
def test_a_checkpoint_that_a_worker_does_not_share_is_refused_with_its_name(
    runtime: None, topics: Topics, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    hidden = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs tmpfs {checkpoint} && exec "$@"', "sh")
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    with spark_cluster(tmp_path / "apart", around=hidden) as apart:
        place = placed(tmp_path, apart, topics, STORIES[:1], checkpoint=str(checkpoint))
        with place.running("--once") as process:
            assert process.wait(WITHIN_S) == 3, place.said()
    said = (tmp_path / "err").read_text()
    assert f"tocsin: the checkpoint {checkpoint} is not shared: executor " in said
    assert "mount the same folder on all machines" in said
    assert place.stored() == 0


@pytest.mark.long
def test_a_master_that_does_not_answer_is_one_sentence(topics: Topics, cluster: SparkCluster, tmp_path: Path) -> None:
    place = placed(tmp_path, cluster, topics, STORIES[:1])
    (port,) = free_ports(1)
    with place.running("--once", "--master", f"spark://127.0.0.1:{port}") as process:
        assert process.wait(WITHIN_S) == 3, place.said()
    said = (tmp_path / "err").read_text()
    assert f"tocsin: Spark cannot be started at spark://127.0.0.1:{port}: " in said
    assert "Traceback" not in said
