"""What a Spark cluster costs: CPU a line with two executors against threads of this machine, over a topic of four partitions.

Batches of one size; the first ones, in which the JVMs still compile, are not counted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median

import yaml
from confluent_kafka import Producer

from tests.bench.corpus import JOB_RATE, lines
from tests.bench.machine import say
from tests.bench.processes import running
from tests.servers.shipping import WITHIN_S, make_topic, record
from tests.servers.spark_cluster import SECRET, SparkCluster, spark_cluster

TOPIC, PARTITIONS, READERS = "bench-clustered", 4, 2
BATCH, BATCHES, WARMING = 100_000, 12, 4
_BATCH = re.compile(r"tocsin: batch \d+: ([\d,]+) lines?")
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(folder: Path, address: str) -> None:
    """Measure both, back to back, and print."""
    _produce(address)
    os.environ["TOCSIN_SPARK_SECRET"] = SECRET
    here = _cost(folder, address, f"local[{READERS}]", {}, lambda: 0.0)
    with spark_cluster(folder / "cluster") as cluster:
        there = _cost(folder, address, cluster.master, cluster.conf(), lambda: _executor_seconds(cluster))
    say("result", f"two executors take {there / here:.2f} times the CPU a line of local[{READERS}]")


def _produce(address: str) -> None:
    make_topic(address, TOPIC, PARTITIONS)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000})
    for number, line in enumerate(lines(BATCH * BATCHES, hits=JOB_RATE)):
        partition = number % PARTITIONS
        producer.produce(TOPIC, record(f"bench-{partition}", "server.log", line), partition=partition)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush(WITHIN_S)


def _cost(folder: Path, address: str, master: str, conf: Mapping[str, str], elsewhere_s: Callable[[], float]) -> float:
    """Return the CPU seconds a line of a run at `master`; `elsewhere_s` is what its executors have used so far."""
    name = "here" if master.startswith("local") else "there"
    source = {"type": "kafka", "bootstrap_servers": address, "topics": [TOPIC], "labels": {"cluster": "bench"}}
    spark = {"master": master, "conf": dict(conf), "cores": READERS, "parallelism": READERS, "batch_lines": BATCH}
    config = {"sources": [source], "store": f"sqlite:///{name}.db", "spark": spark}
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(config))
    marks: list[float] = []
    with running("engine.cli.main", "run", "-c", path, "--once") as session:
        for line in session.said():
            if (batch := _BATCH.match(line)) is not None and int(batch[1].replace(",", "")) >= BATCH:
                marks.append(session.cpu_seconds() + elsewhere_s())
        session.process.wait()
    costs = [after - before for before, after in zip(marks[WARMING - 1 :], marks[WARMING:], strict=False)]
    each = median(costs) / BATCH
    shown = " ".join(f"{cost:.2f}" for cost in costs)
    say(
        "measured",
        f"{master.partition(':')[0]}: {shown} s of CPU a batch of {BATCH:,} lines; {each * 1e6:.1f} s a million lines",
    )
    return each


def _executor_seconds(cluster: SparkCluster) -> float:
    """Return the user and system time of all executors with their Python processes, those that have ended included."""
    stats = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            stats[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICKS
    tree = _below(cluster.executors(), {pid: parent for pid, (parent, _) in stats.items()})
    return sum(stats[pid][1] for pid in tree if pid in stats)


def _below(pids: Iterable[int], parents: Mapping[int, int]) -> set[int]:
    """Return `pids` and all processes below them."""
    tree = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in tree and pid not in tree}:
        tree |= more
    return tree
