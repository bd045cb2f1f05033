"""`tocsin run` on a Spark cluster, over a real Kafka broker: executors, workers, the driver and the master may be killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from engine.spark.checkpoints import LocalCheckpoint
from engine.spark.plans import planned
from tests.servers.broker import free_ports
from tests.servers.cluster_runs import ROOT, SECRETS, WITHIN_S, Shared, greeted, placed
from tests.servers.spark_cluster import HOME, SECRET, SparkCluster, spark_cluster, until
from tests.servers.topics import Topics
from tests.spark.finals import STORIES

SUBMITTED = ROOT / "engine" / "cli" / "submit" / "tocsin_submit.py"

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("runtime"), pytest.mark.timeout(2400)]


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


@pytest.mark.long
def test_worker_and_driver_are_killed_and_another_machine_goes_on_with_the_checkpoint(
    cluster: SparkCluster, topics: Topics, tmp_path: Path, shared: Shared
) -> None:
    conf = {**cluster.conf(), **shared.conf}
    place = placed(tmp_path, cluster, topics, STORIES, batch_lines=20, checkpoint=shared.checkpoint, conf=conf)
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
    assert len(place.expected) == 9
    if shared.folder is not None:
        assert list(shared.folder.glob("query/state/0/*/*.changelog")), "the state is elsewhere"
    assert not [secret for secret in SECRETS.values() if secret in place.said() + (tmp_path / "out").read_text()]


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
def test_a_master_that_stays_away_is_told_with_its_address_and_the_run_goes_on_with_its_executors(
    cluster: SparkCluster, topics: Topics, tmp_path: Path
) -> None:
    place = greeted(tmp_path, cluster, topics, ["Ann"])
    with place.running() as process:
        place.until_stored(1, process)
        cluster.kill_master()
        place.until_said(f"{cluster.master} has not answered for 30 s: the run goes on with the executors that it has", process)
        place.until_stored(place.stored() + 2, process)
        for executor in cluster.executors():
            os.kill(executor, signal.SIGKILL)
        place.until_said(f"{cluster.master} has given this run no executor for 30 s: it does not answer; start it", process)
        cluster.start()
        place.until_said(f"{cluster.master} answers again", process)
        place.until_stored(place.stored() + 2, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN_S) == 0, place.said()
    assert [incident.title for incident in place.incidents()] == ["Ann said hello"]


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
