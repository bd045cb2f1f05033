"""Evidence names the document that its first line is in, whether lines are read one by one or in columns."""

from functools import cache

import pytest

from engine.model.incidents import Evidence
from engine.model.matches import Match
from engine.pipeline import replay
from engine.ports import NO_INGEST_TIME, Chunk, RecordPositions
from engine.spark.combining import MatchBatch, combine, expand
from engine.spark.slices import WorkerStages, scan, stages
from tests.rulepack.playing import plan

pytestmark = pytest.mark.slow

QUIET = "[2022-10-05 17:0{}:{:02},000] INFO Rolled new log segment at offset {} in 3 ms. (kafka.log.Log)\n"
LOUD = (
    "[2022-10-05 17:0{}:{:02},500] ERROR [ReplicaManager broker=1] Error processing append operation on partition a-{}"
    " (kafka.server.ReplicaManager)\n"
    "org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR Set(0) is insufficient to satisfy"
    " the min.isr requirement of 2 for partition a-{}\n"
    "\tat kafka.server.ReplicaManager.append(ReplicaManager.scala:1)\n"
)


@cache
def compiled() -> WorkerStages:
    return stages(plan())


def chunk(text: str) -> Chunk:
    """Return a chunk with a document for each line; the id of a document is the line's number."""
    lines = text.splitlines(keepends=True)
    begins = [sum(map(len, lines[:number])) for number in range(len(lines))]
    origins = [f"documents:i/{number}" for number in range(len(lines))]
    records = RecordPositions(begins, begins, [NO_INGEST_TIME] * len(lines), origins)
    return Chunk("logs/b1", 0, text.encode(), stream="logs", end=len(text), records=records)


def named(text: str, evidence: str) -> str:
    """The origin that the first line of `evidence` ought to have; the stamps are all different."""
    return f"documents:i/{text.splitlines().index(evidence.splitlines()[0])}"


@pytest.mark.parametrize("wrap", ["{}", "2022-10-05T17:00:00.123456789Z stdout F {}"])
def test_a_match_names_the_document_of_its_first_line(wrap: str) -> None:
    parts = [
        QUIET.format(n // 60, n % 60, n) + (LOUD.format(n // 60, n % 60, n % 7, n % 7) if n % 3 == 0 else "")
        for n in range(240)
    ]
    bare = "".join(parts)
    wrapped = "".join(wrap.format(line) + "\n" for line in bare.splitlines())
    items = [e for i in combine(scan([chunk(wrapped)], compiled())) for e in (expand(i) if isinstance(i, MatchBatch) else [i])]
    matches = [each for each in items if isinstance(each, Match)]
    assert len(matches) > 50
    assert [each.origin for each in matches] == [named(bare, each.text) for each in matches]


def test_evidence_of_a_replay_names_its_document() -> None:
    text = "".join(LOUD.format(0, n, n % 7, n % 7) for n in range(30))
    *_, last = replay(chunk(text).lines(), plan())
    assert last.evidence
    for each in last.evidence:
        assert isinstance(each, Evidence)
        assert each.origin == named(text, each.text)
