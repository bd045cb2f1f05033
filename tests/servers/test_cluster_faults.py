"""A run on a Spark cluster whose store goes away, that meets a second one, or whose executors have no disk left."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.servers.cluster_runs import SECRETS, WITHIN_S, Shared, greeted
from tests.servers.postgresql import PostgresServer
from tests.servers.spark_cluster import SparkCluster, spark_cluster
from tests.servers.topics import Topics

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.usefixtures("runtime"),
    pytest.mark.timeout(2400),
]


def test_postgresql_is_restarted_in_mid_run_and_is_waited_for(
    cluster: SparkCluster, topics: Topics, tmp_path: Path, postgresql: PostgresServer
) -> None:
    names = [f"guest-{number:02}" for number in range(12)]
    place = greeted(tmp_path, cluster, topics, names, postgresql.empty_store(), batch_lines=2)
    with place.running("--once") as process:
        place.until_stored(2, process)
        postgresql.crash()
        place.until_said("waiting for the incident store for", process)
        postgresql.start()
        place.until_said("the incident store is back after", process)
        assert process.wait(WITHIN_S) == 1, place.said()
    assert sorted(incident.title for incident in place.incidents()) == [f"{name} said hello" for name in names]
    messages = (tmp_path / "out").read_text()
    assert [messages.count(f"HIGH  {name} said hello") for name in names] == [1] * len(names), messages
    assert not [secret for secret in SECRETS.values() if secret in place.said()]


@pytest.mark.parametrize("shared", ["s3"], indirect=True)
def test_a_second_driver_on_a_checkpoint_that_has_no_lock_is_refused_and_names_the_first(
    cluster: SparkCluster, topics: Topics, tmp_path: Path, postgresql: PostgresServer, shared: Shared
) -> None:
    address, conf = postgresql.empty_store(), {**cluster.conf(), **shared.conf}
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    first, second = (
        greeted(folder, cluster, topics, ["Ann"], address, conf=conf, checkpoint=shared.checkpoint) for folder in folders
    )
    with first.running() as process:
        first.until_stored(1, process)
        with second.running() as other:
            assert other.wait(WITHIN_S) == 3, second.said()
        first.until_stored(first.stored() + 1, process)
    said = (second.folder / "err").read_text().splitlines()[-1]
    assert re.fullmatch(rf"tocsin: the incident store .+ is in use by another job \(process {process.pid} on .+\): .+", said), (
        said
    )
    assert not [secret for secret in SECRETS.values() if secret in second.said()]


def test_a_full_disk_of_an_executor_is_told_with_its_machine(topics: Topics, tmp_path: Path) -> None:
    disk = tmp_path / "full" / "worker-0" / "local"
    disk.mkdir(parents=True)
    small = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=64m tmpfs {disk} && exec "$@"', "sh")
    if subprocess.run([*small, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    with spark_cluster(tmp_path / "full", around=small, workers=1) as cluster:
        place = greeted(tmp_path, cluster, topics, ["Ann"], cores=1)
        with place.running() as process:
            place.until_stored(2, process)
            _fill(Path(f"/proc/{cluster.executors()[0]}/root{disk}/filler"))
            assert process.wait(WITHIN_S) == 3, place.said()
    said = (tmp_path / "err").read_text()
    assert re.search(
        r"^tocsin: executor \d+ on 127\.0\.0\.2 cannot write to its disk: No space left on device; ", said, re.M
    ), said
    assert "Traceback" not in said


def _fill(file: Path) -> None:
    """Take all that is left of the file system of `file`."""
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(1 << 16))
        except OSError:
            return
