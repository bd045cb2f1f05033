"""The Spark job gives the final incidents of `replay()`, however its input is cut up."""

from __future__ import annotations

import gzip
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.dsl import builtin_rules, load
from engine.errors import StoreError
from engine.model.rules import Plan
from engine.pipeline import replay
from engine.spark import job as job_module
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.rulepack.playing import plan
from tests.spark.finals import HEALTHY, STORIES, finals, labels, lines, references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SMALLEST = next(folder for folder in STORIES if folder.name.startswith("3-"))


def files(folder: Path) -> SourceSpec:
    settings = {"paths": [str(folder)], "labels": labels(folder.name), "final": True}
    return SourceSpec(folder.name, "connectors.files:open_source", settings, folder.name)


def streamed(
    spark: SparkSession, sources: Sequence[SourceSpec], at: Path, rules: Plan | None = None, **how: Any
) -> tuple[list[Any], list[BatchReport]]:
    """Run a bounded job; return its final incidents and what its batches reported."""
    store = Store.open(f"sqlite:///{at}/tocsin.db")
    reports: list[BatchReport] = []
    run(Job(sources, rules or plan(), store, at / "checkpoint", bounded=True, on_batch=reports.append, **how), spark)
    found = finals(store.incidents())
    store.close()
    return found, reports


def test_all_samples_in_one_batch_and_nothing_more_the_second_time(spark: SparkSession, tmp_path: Path) -> None:
    sources = [files(folder) for folder in (*STORIES, *HEALTHY)]
    found, reports = streamed(spark, sources, tmp_path)
    assert found == references((*STORIES, *HEALTHY))
    assert {final[0][0] for final in found} == {folder.name for folder in STORIES}
    again, more = streamed(spark, sources, tmp_path)
    assert again == found
    assert sum(report.lines for report in more) == 0
    assert sum(report.lines for report in reports) > 1000


def test_a_batch_that_does_not_end_is_told_of_while_it_lasts(spark: SparkSession, tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    reports: list[BatchReport] = []
    told = threading.Event()

    def last(report: BatchReport) -> None:
        reports.append(report)
        if report.messages:
            told.set()
        else:
            assert told.wait(120), "it was at work all the time, and nothing was said"

    run(Job([files(SMALLEST)], plan(), store, tmp_path / "checkpoint", True, overdue_after_s=1, on_batch=last), spark)
    store.close()
    (overdue,) = [report for report in reports if report.messages]
    assert overdue.messages[0].startswith("batch 0 has been at work for 1 s (Spark: ")


@pytest.fixture(params=[1, 2], ids=["1-partition", "2-partitions"])
def partitions(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[int]:
    """As many partitions of state, and of input."""
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    spark.conf.set(key, str(request.param))
    yield request.param
    spark.conf.set(key, before)


def interrupted(spark: SparkSession, sources: Sequence[SourceSpec], at: Path, batches: int, **how: Any) -> None:
    """Run a job that fails when its `batches`th batch is in the store, and Spark does not know yet."""
    store = Store.open(f"sqlite:///{at}/tocsin.db")

    def fail(report: BatchReport) -> None:
        if report.batch + 1 >= batches:
            raise StoreError("the power is gone")

    with pytest.raises(StoreError, match="the power is gone"):
        run(Job(sources, plan(), store, at / "checkpoint", bounded=True, on_batch=fail, **how), spark)
    assert store.batches() == batches
    store.close()


@pytest.mark.parametrize(
    ("folders", "max_lines", "batches"),
    [
        pytest.param((*STORIES, *HEALTHY), None, 1, id="everything"),
        pytest.param(STORIES, 7, 6, id="7-lines", marks=pytest.mark.long),
        pytest.param((SMALLEST,), 1, 5, id="1-line"),
    ],
)
def test_a_job_that_is_interrupted_goes_on_to_what_replay_gives(
    spark: SparkSession, tmp_path: Path, partitions: int, folders: Sequence[Path], max_lines: int | None, batches: int
) -> None:
    sources, how = [files(folder) for folder in folders], {"max_lines": max_lines, "parallelism": partitions}
    interrupted(spark, sources, tmp_path, batches, **how)
    found, reports = streamed(spark, sources, tmp_path, **how)
    assert found == references(folders)
    assert (reports[0].batch, reports[0].incidents) == (batches - 1, 0), "the last batch comes again, and changes nothing"


PRINTED = """\
[2023-02-03 02:04:02,285] INFO [cdc-source|task-0] ProducerConfig values:
\tacks = -1
\tbatch.size = 16384
\tclient.id = connector-producer-cdc-source-0
\tmax.request.size = 1572864
\tretries = 2147483647
 (org.apache.kafka.clients.producer.ProducerConfig:370)
[2023-02-03 02:05:02,285] ERROR [cdc-source|task-0] WorkerSourceTask{id=cdc-source-0} failed to send record to a:  (o.a.k.c.T:4)
org.apache.kafka.common.errors.RecordTooLargeException: The message is 1625872 bytes when serialized \
which is larger than 1572864, which is the value of the max.request.size configuration.
\tat org.apache.kafka.connect.runtime.WorkerSourceTask.sendRecords(WorkerSourceTask.java:406)
"""


def test_a_printed_configuration_is_read_across_batches(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "worker"
    folder.mkdir()
    (folder / "connect.log").write_text(PRINTED, encoding="utf-8")
    found, reports = streamed(spark, [files(folder)], tmp_path, max_lines=5)
    assert [report.lines for report in reports] == [5, 5]
    assert found == references([folder])
    assert "(now max.request.size=1572864)" in repr(found)


REPLAYED = """\
[2026-11-21 08:07:30,449] INFO [ControllerServer id=9] Starting controller (kafka.server.ControllerServer)
[2026-11-21 08:07:31,402] INFO [MetadataLoader id=9] The loader is still catching up (o.a.k.i.M)
[2026-11-21 08:07:31,530] INFO [QuorumController id=9] UNCLEAN partition change for orders-0 with topic ID Qrv: \
isr: [3] -> [2], leader: 3 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 4 (o.a.k.c.R)
[2026-11-21 08:07:31,752] INFO [QuorumController id=9] Becoming the active controller at epoch 3. (o.a.k.c.Q)
[2026-11-21 08:07:32,410] INFO [QuorumController id=9] UNCLEAN partition change for clicks-4 with topic ID SWR: \
isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 8 (o.a.k.c.R)
"""


def test_what_a_node_replays_is_no_news_whatever_the_batches(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "controller"
    folder.mkdir()
    (folder / "controller.log").write_text(REPLAYED, encoding="utf-8")
    found, reports = streamed(spark, [files(folder)], tmp_path, max_lines=2)
    assert [report.lines for report in reports] == [2, 2, 1]
    assert found == references([folder])
    (final,) = found
    assert "clicks-4" in repr(final)
    assert "orders-0" not in repr(final)


def test_starting_spark_leaves_ctrl_c_to_the_caller(spark: SparkSession) -> None:
    as_it_began = (signal.default_int_handler, signal.SIG_IGN)  # the latter of a process that a script put in the background
    assert signal.getsignal(signal.SIGINT) in as_it_began


def test_a_job_told_to_stop_while_spark_starts_reads_nothing(spark: SparkSession, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert streamed(spark, [files(SMALLEST)], tmp_path, stop=stop) == ([], [])
    assert not (tmp_path / "checkpoint").exists()


def test_lost_lines_are_reported_and_the_job_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-4])
    (tmp_path / "new.log").write_text("fine\n")
    settings = {"paths": [str(tmp_path / "*.log*")], "final": True}
    source = SourceSpec("logs", "connectors.files:open_source", settings, "default")
    _, reports = streamed(spark, [source], tmp_path / "state")
    assert sum(report.lines for report in reports) == 3
    (said,) = [sentence for report in reports for sentence in report.messages]
    assert said.startswith("lines of '")
    assert "damaged or ends early" in said


LINE = """\
id: {id}
title: "{id}"
severity: info
component: any
detection: {{seen: "{id} {{topic}} at {{n:int}}", condition: seen}}
entity: [topic]
"""
OVER = """\
id: {id}
title: "{id}, {{count}} times"
severity: {severity}
component: any
correlation: {correlation}
runbook: {{cause: "{{topic.all}}, {{n.min}} to {{n.max}}", impact: None.}}
"""
CORRELATIONS = {
    "rising": "{type: value_count, rules: [begun], group-by: [topic], timespan: 60s, condition: {field: n, gte: 2}}",
    "never-done": "{type: pair, open: [begun], expect: [done], group-by: [topic], within: 30s}",
    "spread": "{type: value_count, rules: [begun, done], timespan: 60s, condition: {field: topic, gte: 2}}",
    "in-order": "{type: temporal_ordered, rules: [begun, done], group-by: [topic], timespan: 60s}",
    "together": "{type: event_count, rules: [rising, never-done, in-order], timespan: 10m, condition: {gte: 3}}",
}


def test_correlations_of_every_type_end_as_in_replay_line_by_line(spark: SparkSession, tmp_path: Path) -> None:
    rules, logs = tmp_path / "rules", tmp_path / "logs"
    rules.mkdir()
    logs.mkdir()
    for id in ("begun", "done"):
        (rules / f"{id}.yml").write_text(LINE.format(id=id))
    for id, correlation in CORRELATIONS.items():
        severity = "low" if id == "rising" else "high"
        (rules / f"{id}.yml").write_text(OVER.format(id=id, correlation=correlation, severity=severity))
    said = {
        "a.log": [(0, "begun x at 1"), (20, "begun x at 5"), (61, "begun y at 7"), (300, "nothing")],
        "b.log": [(40, "done x at 5"), (70, "done z at 2"), (300, "nothing")],
    }
    for name, some in said.items():
        stamped = (f"[2024-01-01 10:{at // 60:02}:{at % 60:02},000] INFO {text}\n" for at, text in some)
        (logs / name).write_text("".join(stamped))
    made = load([rules, builtin_rules() / "formats"])
    final = {each.id: each for each in replay(lines(logs, "logs"), made)}
    found, _ = streamed(spark, [files(logs)], tmp_path / "state", made, max_lines=1)
    assert found == finals(final.values())
    assert {each[0][1] for each in found} == set(CORRELATIONS)


FORGED = "2022-10-05 17:06:00.000  INFO 1 --- [main] com.example.Orders : {text}\n"


def test_what_is_quoted_or_stamped_ahead_excuses_nobody_whatever_the_batches(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(next(each for each in STORIES if each.name.startswith("4-")), folder)
    stop = "[KafkaServer id=1] shutting down"
    (folder / "app.log").write_text("".join(FORGED.format(text=text) for text in (stop, f"he read {stop}")), encoding="utf-8")
    dying = folder / "broker-1" / "server.log.2022-10-05-17"
    first, *rest = dying.read_text(encoding="utf-8").splitlines(keepends=True)
    ahead = f"[2022-10-05 20:04:00,000] INFO {stop} (kafka.server.KafkaServer)\n"
    dying.write_text("".join([first, ahead, *rest]), encoding="utf-8")
    found, reports = streamed(spark, [files(folder)], tmp_path, max_lines=40)
    assert len(reports) > 1
    assert found == references([folder])
    assert [final[0][1] for final in found] == ["broker-silent"]
    assert "status='open'" in found[0][1]


def test_what_only_the_driver_can_read_is_read_by_its_planner_with_the_plan_by_its_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "is_local", lambda master: False)  # as on a cluster
    settings = {"paths": [str(SMALLEST)], "labels": labels(SMALLEST.name), "final": True}
    source = SourceSpec(SMALLEST.name, "connectors.files:open_source", settings, SMALLEST.name, is_local=True)
    found, reports = streamed(spark, [source], tmp_path, max_bytes=1 << 20)
    assert found == references([SMALLEST])
    assert sum(report.lines for report in reports) > 0
