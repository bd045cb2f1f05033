"""The job audits what it reads, if it is told to: the operator is told how much, seldom, and of every difference."""

from __future__ import annotations

import pytest

from engine.columns import reading
from engine.columns.audit import AuditResult
from engine.ports import Chunk
from engine.spark.audit_report import AuditReport
from engine.spark.combining import combine
from engine.spark.own import event_of_notice
from engine.spark.rows import InputNotice, received, sent
from engine.spark.slices import Scanned, WorkerStages, scan, stages
from tests.building import at
from tests.rulepack.playing import plan

QUIET = "[2022-10-05 17:{m:02d}:{s:02d},000] INFO Rolled new log segment at offset {n} in 3 ms. (kafka.log.Log)\n"
UNKNOWN = "[2022-10-05 17:{m:02d}:{s:02d},000] ERROR no rule knows this of {n} (com.example.Orders)\n"
TROUBLE = (
    "[2022-10-05 17:{m:02d}:{s:02d},000] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-{n} "
    "(k.s.ReplicaManager)\norg.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(1) "
    "is insufficient to satisfy the min.isr requirement of 2 for partition a-{n}, password={n}secret\n"
)


def chunk() -> Chunk:
    kinds = {17: TROUBLE, 23: UNKNOWN}
    rows = (kinds.get(n % 40, QUIET).format(m=n // 60, s=n % 60, n=1000 + n) for n in range(200))
    return Chunk("a.log", 0, "".join(rows).encode(), 1, None, {"cluster": "x"})


def results(compiled: WorkerStages) -> list[AuditResult]:
    rows = [received(kind, body) for _, kind, body in (sent("x", item) for item in combine(scan([chunk()], compiled, True)))]
    return [row for row in rows if isinstance(row, AuditResult)]


def test_the_first_of_sixteen_blocks_of_a_worker_is_audited_whatever_slice_it_is_of() -> None:
    compiled = stages(plan())
    audited = [results(compiled) for _ in range(18)]
    assert audited == [[AuditResult(1)], *[[]] * 15, [AuditResult(1)], []]


def test_without_it_nothing_is_audited() -> None:
    assert not [item for item in scan([chunk()], stages(plan())) if isinstance(item, AuditResult)]


def test_a_difference_is_an_incident_about_tocsin_and_bears_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "matches_of", lambda *_: iter(()))
    compiled = stages(plan())
    ((result,),) = [results(compiled)]
    (sentence,) = result.differences
    assert sentence.startswith("'a.log': columns and the reference differ")
    assert "password=1" not in sentence
    event = event_of_notice(InputNotice(at(0), sentence), "x")
    assert [match.rule_id for match in compiled.own.matcher.match_event(event)] == ["ingest-read-differently"]


def test_counts_are_told_at_first_and_when_there_are_ten_times_as_many() -> None:
    report = AuditReport()
    assert report.sentences([Scanned("a.log", 5, 100)]) == []
    sentences = [report.sentences([AuditResult(1)]) for _ in range(30)]
    assert [(number, told) for number, told in enumerate(sentences, 1) if told] == [
        (1, ["audit: 1 block also read by the reference: no difference"]),
        (10, ["audit: 10 blocks also read by the reference: no difference"]),
    ]


def test_a_difference_is_told_at_once() -> None:
    report = AuditReport()
    report.sentences([AuditResult(2)])
    assert report.sentences([AuditResult(1, ("x",)), AuditResult(1)]) == [
        "audit: 4 blocks also read by the reference: 1 differ"
    ]
