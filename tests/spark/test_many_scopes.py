"""Twenty clusters of Kafka with fifty logs each: every cluster's incident comes, however much another one has to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.spark.job import BatchReport, Job, run
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import finals, references
from tests.spark.test_job import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCOPES, LOGS, PARTITIONS = 20, 50, 4
HEALTHY = "[2022-10-05 17:{:02}:{:02},{:03}] INFO [GroupCoordinator {}]: Group app is stable (kafka.coordinator.group)\n"
FAULT = (
    "[2022-10-05 17:59:01,001] ERROR [ReplicaManager broker={0}] Error processing append operation on partition orders-0"
    " (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR"
    " Set({0}) is insufficient to satisfy the min.isr requirement of 2 for partition orders-0\n"
)


def cluster(folder: Path, lines: int) -> Path:
    """Write LOGS logs of so many healthy lines; the last one ends with a fault."""
    for broker in range(LOGS):
        (log := folder / f"broker-{broker:02}" / "server.log").parent.mkdir(parents=True)
        healthy = "".join(HEALTHY.format(n // 60, n % 60, broker, broker) for n in range(lines))
        log.write_text(healthy + FAULT.format(broker) * (broker == LOGS - 1))
    return folder


def spread(spark: SparkSession, query: Path) -> list[int]:
    """Return how many scopes each partition of the state has."""
    state = spark.read.format("statestore").option("stateVarName", "parts").load(str(query))
    rows = state.selectExpr("partition_id", "key.scope AS scope").distinct().collect()
    return sorted(Counter(row.partition_id for row in rows).values())


@pytest.fixture
def partitions(spark: SparkSession) -> Iterator[int]:
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    spark.conf.set(key, str(PARTITIONS))
    yield PARTITIONS
    spark.conf.set(key, before)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_scope_is_served_while_one_has_much_to_read_and_the_state_is_spread(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    large, *small = (cluster(tmp_path / f"kafka-{n:02}", 60 if n == 0 else 2) for n in range(SCOPES))
    names = [folder.name for folder in small]
    store, checkpoint = Store.open(f"sqlite:///{tmp_path}/tocsin.db"), tmp_path / "checkpoint"
    served: list[list[str]] = []  # by batch, the scopes that have an incident

    def look(report: BatchReport) -> None:
        if report.is_stored:
            served.append(sorted({str(incident.key[0]) for incident in store.incidents()}))

    sources = [files(folder) for folder in (large, *small)]
    run(Job(sources, plan(), store, checkpoint, bounded=True, max_lines=150, parallelism=2, on_batch=look), spark)
    assert finals(store.incidents()) == references((large, *small))
    store.close()
    assert (len(served) > 10, served[2]) == (True, names), "the large one takes many batches, and nobody waits for it"
    assert served[-1] == [large.name, *names]
    scopes = spread(spark, checkpoint / "query")
    assert (len(scopes), sum(scopes)) == (partitions, SCOPES)
    assert scopes[-1] <= SCOPES / 2
