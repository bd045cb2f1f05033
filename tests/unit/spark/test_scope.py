"""What the job does with a batch, without Spark: any cutting into batches gives the final incidents of `replay()`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connectors.files import FilesSource
from engine.incident import MemoryLedger, group
from engine.model.incidents import Blind, Evidence, Roster, Verdict
from engine.model.records import Tick
from engine.ports import Chunk
from engine.spark.combining import combined
from engine.spark.rows import Item, Loss, item, row
from engine.spark.scope import ScopeState
from engine.spark.slices import Stages, scan, stages
from tests.building import at
from tests.spark.finals import HEALTHY, STORIES, finals, labels, plan, reference

REFUSED = (
    b"[2022-10-05 17:05:01,123] ERROR [ReplicaManager broker=1] Error processing append operation on partition dawn-0"
    b" (kafka.server.ReplicaManager)\n"
    b"org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    b" the min.isr requirement of 2 for partition dawn-0\n"
)


@cache
def compiled() -> Stages:
    return stages(plan())


def batches(source: FilesSource, max_lines: int | None, parallelism: int) -> Iterator[list[Item]]:
    """The rows of each batch, as the Spark adapter makes them; offsets and rows survive as text only."""
    offset = source.initial()
    while (end := json.loads(json.dumps(source.latest(offset, max_lines)))) != offset:
        rows: list[Item] = []
        for slice_ in source.partitions(offset, end, parallelism):
            rows += combined(scan(source.chunks(slice_), compiled()))
        rows += source.progress(end)
        yield [item(kind, body) for _, kind, body in (row("x", each) for each in rows)]
        offset = end


def final(folder: Path, max_lines: int | None, parallelism: int = 1) -> list[Any]:
    source = FilesSource([str(folder)], labels(folder.name), final=True)
    state: dict[str, str] = {}
    ledger = MemoryLedger()
    for rows in batches(source, max_lines, parallelism):
        said = ScopeState(compiled(), folder.name, state, bounded=True).take(rows)
        findings = [each for each in said if isinstance(each, Verdict | Evidence | Roster | Blind)]
        list(group(findings, plan(), ledger))
    return finals(ledger.incidents(folder.name))


@pytest.mark.parametrize("folder", [*STORIES, *HEALTHY], ids=lambda folder: folder.name)
def test_one_batch_gives_what_replay_gives(folder: Path) -> None:
    assert final(folder, None, parallelism=2) == reference(folder)


@pytest.mark.parametrize("lines", [7, 31])
@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_small_batches_give_what_replay_gives(folder: Path, lines: int) -> None:
    assert final(folder, lines) == reference(folder)


def test_an_open_end_speaks_at_the_second_tick_when_the_input_has_no_end() -> None:
    chunk = Chunk("b.log", 0, REFUSED, 1, None, {"cluster": "x"})
    state: dict[str, str] = {}

    def counts(batch: list[Item]) -> list[int]:
        said = ScopeState(compiled(), "x", state, bounded=False).take(batch)
        alerts = [alert for each in said if isinstance(each, Verdict) for alert in each.alerts]
        return [alert.count for alert in alerts if alert.key[1] == "broker-not-enough-replicas"]

    assert counts(list(scan([chunk], compiled()))) == []
    assert counts([Tick(at(1))]) == []
    assert counts([Tick(at(2))]) == [1]
    assert counts([Tick(at(3))]) == []


def test_what_is_lost_is_passed_on() -> None:
    loss = Loss("a.log", 4, 8, "the file is gone")
    assert loss in ScopeState(compiled(), "x", {}, bounded=True).take([loss])
