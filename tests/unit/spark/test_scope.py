"""What the job does with a batch, without Spark: any cutting into batches gives the final incidents of `replay()`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from connectors.files import FilesSource
from engine.incident import MemoryLedger, group
from engine.model.incidents import Evidence, NotEvaluated, Roster, Verdict
from engine.model.records import Tick
from engine.ports import Chunk
from engine.spark.combining import combine
from engine.spark.rows import BatchCounts, BatchRow, InputLoss, counted, item, row
from engine.spark.scope import ScopeState
from engine.spark.slices import WorkerStages, scan, stages
from engine.spark.stalls import Stall, notices
from tests.building import at
from tests.rulepack.playing import plan
from tests.spark.finals import HEALTHY, STORIES, finals, labels, reference

pytestmark = pytest.mark.slow

REFUSED = (
    b"[2022-10-05 17:05:01,123] ERROR [ReplicaManager broker=1] Error processing append operation on partition dawn-0"
    b" (kafka.server.ReplicaManager)\n"
    b"org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    b" the min.isr requirement of 2 for partition dawn-0\n"
)


EPOCH_S = int(at(0).timestamp())


@cache
def compiled() -> WorkerStages:
    return stages(plan())


Batch = tuple[list[BatchRow], dict[str, Any]]


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
    rows: list[BatchRow] = []
    for slice_ in source.partitions(offset, end, parallelism):
        rows += combine(scan(source.chunks(slice_), compiled()))
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
            ScopeState(compiled(), folder.name, dict(state), bounded=True).take(rows)  # never got into the store, but rests
            rows, after = batch(folder, offset, max_lines, parallelism) or pytest.fail("nothing the second time")
        said = ScopeState(compiled(), folder.name, state, bounded=True).take(rows)
        findings = [each for each in said if isinstance(each, Verdict | Evidence | Roster | NotEvaluated)]
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


@pytest.mark.parametrize("folder", HEALTHY, ids=lambda folder: folder.name)
def test_healthy_logs_stay_silent_in_small_batches(folder: Path) -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in folder.glob("*.log"))
    assert final(folder, 1 + lines // 150, dies=True) == reference(folder)


def test_an_open_end_speaks_at_the_second_tick_when_the_input_has_no_end() -> None:
    chunk = Chunk("b.log", 0, REFUSED, 1, None, {"cluster": "x"})
    state: dict[str, str] = {}

    def counts(batch: list[BatchRow]) -> list[int]:
        said = ScopeState(compiled(), "x", state, bounded=False).take(batch)
        alerts = [alert for each in said if isinstance(each, Verdict) for alert in each.alerts]
        return [alert.count for alert in alerts if alert.key[1] == "broker-not-enough-replicas"]

    assert counts(list(scan([chunk], compiled()))) == []
    assert counts([Tick(at(1))]) == []
    assert counts([Tick(at(2))]) == [1]
    assert counts([Tick(at(3))]) == []


def test_a_match_is_counted_once_by_its_rule_although_its_event_goes_on() -> None:
    state: dict[str, str] = {}
    first, rest = REFUSED, b"Caused by: java.lang.IllegalStateException: no\n" + REFUSED

    def counts(*batch: BatchRow) -> BatchCounts:
        return counted(ScopeState(compiled(), "x", state, bounded=False).take(batch))

    read = [*scan([Chunk("b.log", 0, first, 1, None, {"cluster": "x"})], compiled())]
    assert counts(*read) == BatchCounts()
    assert counts(Tick(at(1))) == BatchCounts()
    assert counts(Tick(at(2))) == BatchCounts(0, {"broker-not-enough-replicas": 1})
    read = [*scan([Chunk("b.log", len(first), rest, 3, None, {"cluster": "x"})], compiled())]
    assert counts(*read) == BatchCounts(1)
    assert counts(Tick(at(3))) == BatchCounts()
    assert counts(Tick(at(4)), BatchCounts(late={"logs-*": 3})) == BatchCounts(
        0, {"broker-not-enough-replicas": 1}, {"logs-*": 3}
    )


def test_what_is_lost_is_passed_on() -> None:
    loss = InputLoss("a.log", 4, 8, "the file is gone", at(1))
    assert loss in ScopeState(compiled(), "x", {}, bounded=True).take([loss])


class Scope:
    """A scope that takes one batch after the other; its state and its items survive as text only."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.ledger = MemoryLedger()

    def take(self, *items: BatchRow) -> None:
        read = [item(kind, body) for _, kind, body in (row("x", each) for each in items)]
        said = ScopeState(compiled(), "x", self.state, bounded=False).take(read)
        list(
            group([each for each in said if isinstance(each, Verdict | Evidence | Roster | NotEvaluated)], plan(), self.ledger)
        )

    def told(self) -> list[tuple[str, str, str, int]]:
        return [(i.rule, i.status, i.labels["source"], i.count) for i in self.ledger.incidents("x")]


def test_lost_lines_are_an_incident_about_the_source_that_ends_when_no_more_are_lost() -> None:
    scope = Scope()
    scope.take(InputLoss("logs-0", 3, 7, "retention", at(1)), Tick(at(1)))
    (incident,) = scope.ledger.incidents("x")
    assert incident.title == "Lines of logs-0 were gone before tocsin could read them"
    assert incident.labels == {"cluster": "x", "source": "logs-0"}
    assert "offsets 3 to 7" in incident.evidence[0].text
    scope.take(InputLoss("logs-0", 9, 9, "made anew", at(60)), InputLoss("logs-1", 1, 2, "retention", at(60)), Tick(at(60)))
    assert scope.told() == [
        ("ingest-lines-lost", "open", "logs-0", 2),
        ("ingest-lines-lost", "open", "logs-1", 1),
    ]
    for second in range(70, 720, 10):
        scope.take(Tick(at(second)))
    assert [status for _, status, _, _ in scope.told()] == ["resolved", "resolved"]


def test_a_batch_that_is_repeated_tells_of_lost_lines_once() -> None:
    scope = Scope()
    for _ in range(2):
        scope.take(InputLoss("logs-0", 3, 7, "retention", at(1)), Tick(at(1)))
    assert scope.told() == [("ingest-lines-lost", "open", "logs-0", 1)]


def test_a_stall_is_an_incident_until_the_source_is_readable_again_whatever_the_logs_say() -> None:
    scope = Scope()
    stall = Stall("x", "k1:9092", "Connection refused", 0, ("logs",))
    told = replace(stall, reported=True)
    scope.take(*[notice for _, notice in notices([], [stall], EPOCH_S)], Tick(at(0)))
    assert scope.told() == []
    scope.take(*[notice for _, notice in notices([stall], [told], EPOCH_S + 60)], Tick(at(60)))
    assert scope.told() == [("ingest-stalled", "open", "k1:9092", 1)]
    scope.take(Tick(at(7200)))
    assert scope.told() == [("ingest-stalled", "open", "k1:9092", 1)]
    scope.take(*[notice for _, notice in notices([told], [], EPOCH_S + 7205)], Tick(at(7205)))
    assert scope.told() == [("ingest-stalled", "resolved", "k1:9092", 1)]


def test_what_is_said_of_our_input_takes_no_part_in_what_is_judged_of_the_logs() -> None:
    alone, beside = Scope(), Scope()
    lines = list(scan([Chunk("a.log", 0, REFUSED)], compiled()))
    alone.take(*lines, Tick(at(60)))
    beside.take(*lines, InputLoss("logs-0", 3, 7, "retention", at(1)), Tick(at(60)))
    of_logs = [incident for incident in beside.ledger.incidents("x") if incident.component != "tocsin"]
    assert of_logs == list(alone.ledger.incidents("x"))
    assert beside.state["head"] == alone.state["head"]
    assert len(beside.ledger.incidents("x")) == len(of_logs) + 1
