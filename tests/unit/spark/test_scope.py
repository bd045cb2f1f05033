"""What the job does with a batch, without Spark: any cutting into batches gives the final incidents of `replay()`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connectors.files import FilesSource
from engine.incident import MemoryLedger, group
from engine.model.incidents import Blind, Evidence, Roster, Verdict
from engine.model.records import Tick
from engine.ports import Chunk
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


Batch = tuple[list[Item], dict[str, Any]]


def opened(folder: Path) -> FilesSource:
    return FilesSource([str(folder)], labels(folder.name), final=True)


def batch(folder: Path, offset: dict[str, Any], max_lines: int | None, parallelism: int) -> Batch | None:
    """The next batch as the Spark adapter makes it in a process that has just begun: its rows, and the offset after it.

    Offsets and rows survive as text only.
    """
    source = opened(folder)
    end = json.loads(json.dumps(source.latest(offset, max_lines)))
    if end == offset:
        return None
    rows: list[Item] = []
    for slice_ in source.partitions(offset, end, parallelism):
        rows += scan(source.chunks(slice_), compiled())
    rows += source.progress(end)
    return [item(kind, body) for _, kind, body in (row("x", each) for each in rows)], end


def final(folder: Path, max_lines: int | None, parallelism: int = 1, dies: bool = False) -> list[Any]:
    """The final incidents of a folder. `dies`: every third batch is done once more, from the state and the offset before it."""
    state: dict[str, str] = {}
    ledger = MemoryLedger()
    offset: dict[str, Any] = dict(opened(folder).initial())
    number = 0
    while (made := batch(folder, offset, max_lines, parallelism)) is not None:
        rows, after = made
        number += 1
        if dies and number % 3 == 1:
            ScopeState(compiled(), folder.name, dict(state), bounded=True).take(rows)  # never got into the store
            rows, after = batch(folder, offset, max_lines, parallelism) or pytest.fail("nothing the second time")
        said = ScopeState(compiled(), folder.name, state, bounded=True).take(rows)
        findings = [each for each in said if isinstance(each, Verdict | Evidence | Roster | Blind)]
        list(group(findings, plan(), ledger))
        offset = after
    return finals(ledger.incidents(folder.name))


@pytest.mark.parametrize("folder", [*STORIES, *HEALTHY], ids=lambda folder: folder.name)
def test_one_batch_gives_what_replay_gives(folder: Path) -> None:
    assert final(folder, None, parallelism=2, dies=True) == reference(folder)


@pytest.mark.parametrize(("lines", "parallelism"), [(1, 1), (7, 1), (7, 2), (31, 1), (None, 1)])
@pytest.mark.parametrize("folder", STORIES, ids=lambda folder: folder.name)
def test_any_batches_give_what_replay_gives(folder: Path, lines: int | None, parallelism: int) -> None:
    assert final(folder, lines, parallelism, dies=True) == reference(folder)


@pytest.mark.slow
@pytest.mark.parametrize("folder", HEALTHY, ids=lambda folder: folder.name)
def test_healthy_logs_stay_silent_line_by_line(folder: Path) -> None:
    assert final(folder, 1, dies=True) == reference(folder)


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
