"""A real run over lines on which stages fail, and over damaged ones: it ends as it should, and so does the next."""

from __future__ import annotations

import stat
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from engine.spark.dead_letters import file_of
from engine.spark.job import BatchReport, Job, run
from engine.spark.sources import SourceSpec
from engine.store import Store
from tests.damaged import damaged, stamped
from tests.poison import HEAD, IN_CORRELATE, IN_GROUP, IN_MATCH, poisoned
from tests.rulepack.playing import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POISON = [
    "[0001-01-01 00:00:00,000] ERROR [ReplicaManager broker=0] Error processing append operation on partition dawn-0 (k.R)",
    "[9999-12-31 23:59:59,999] ERROR WorkerSinkTask{id=end-0} Task threw an uncaught and unrecoverable exception. Task is being"
    " killed and will not recover until manually restarted (org.apache.kafka.connect.runtime.WorkerTask)",
    '{"level":"ERROR","message":"Error processing append operation","host":"\\ud800","time":"0001-01-01T00:00:00Z"}',
    *(
        f"{HEAD.format(minute=2)} {word}{more} password=hunter22"
        for word in (IN_MATCH, IN_CORRELATE, IN_GROUP)
        for more in ("", "-SYMPTOM")
    ),
]
SOUND = (
    f"{HEAD.format(minute=30)} WorkerSinkTask{{id=sound-0}} Task threw an uncaught and unrecoverable exception. Task is being"
    " killed and will not recover until manually restarted (org.apache.kafka.connect.runtime.WorkerTask)"
)


def test_a_run_goes_on_behind_every_poisonous_line_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    logs, random = tmp_path / "logs", Random(7)
    logs.mkdir()
    (logs / "poison.log").write_text("".join(f"{line}\n" for line in (*POISON, SOUND)))
    (logs / "damaged.log").write_bytes(b"\n".join(stamped(damaged(random), random) for _ in range(2000)) + b"\n")
    source = SourceSpec("logs", "connectors.files:open_source", {"paths": [str(logs)], "final": True}, "default")
    store, checkpoint = Store.open(f"sqlite:///{tmp_path}/tocsin.db"), tmp_path / "checkpoint"

    def again() -> list[BatchReport]:
        reports: list[BatchReport] = []
        run(Job([source], poisoned(plan()), store, checkpoint, bounded=True, on_batch=reports.append), spark)
        return reports

    reports = again()
    assert sum(report.lines for report in reports) == len(POISON) + 1 + 2000
    letters = store.quarantined()
    assert {letter.stage for letter in letters} == {"match", "correlate", "group"}
    rules = {incident.rule for incident in store.incidents()}
    assert {"connect-task-killed", "ingest-lines-quarantined"} <= rules
    assert any("sound" in incident.title for incident in store.incidents())
    said = "\n".join(sentence for report in reports for sentence in report.messages)
    assert "in quarantine" in said
    assert "out of bounds" in said
    path = file_of(checkpoint)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text().splitlines()) >= len(letters)
    assert "hunter22" not in path.read_text()
    with (logs / "poison.log").open("a") as file:
        file.write(f"{POISON[0]}\n{POISON[3]}\n{SOUND.replace('sound', 'later')}\n")
    assert sum(report.lines for report in again()) == 3
    assert any("later" in incident.title for incident in store.incidents())
    store.close()
