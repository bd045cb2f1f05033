"""Faults provoked on real clusters, and harmless events: the logs of all give one incident with the right root, or none.

`python -m tests.lab faults` provokes them anew and compares with the same `expected.yml`; `tests/lab/cutting.py` cut these
logs down.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rulepack.playing import Story, play, story, unlike

pytestmark = pytest.mark.slow

CAPTURED = Path(__file__).parents[1] / "captured"
HISTORIES = sorted({log.parent for log in CAPTURED.glob("*/*.log")})


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda folder: folder.name)
def test_a_history_raises_exactly_what_it_should(folder: Path) -> None:
    assert unlike(play(story(folder)), folder) == []


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda folder: folder.name)
def test_the_order_of_files_makes_no_difference(folder: Path) -> None:
    assert unlike(play(story(folder).backwards()), folder) == []


def test_elections_that_fail_for_seconds_before_one_is_won_raise_nothing() -> None:
    lost = "Election timed out before receiving sufficient vote responses to become candidate."
    won = "Completed transition to Leader(localVoterNode=VoterNode(), epoch=1) from CandidateState(epoch=1)"
    logs = {f"broker-{id_}.log": "".join(_raft(id_, second, lost) for second in range(id_, 24, 3)) for id_ in (1, 2, 3)}
    started = Story({**logs, "broker-1.log": logs["broker-1.log"] + _raft(1, 25, won)})
    assert play(started) == []
    assert [incident.rule for incident in play(Story(logs))] == ["kraft-quorum-no-majority"]


def test_a_producer_that_the_new_leader_does_not_know_is_part_of_an_unclean_election() -> None:
    told = story(CAPTURED / "unclean-election")
    gap = (
        "[2026-11-22 03:20:24,101] ERROR [ReplicaManager broker=2] Error processing append operation on partition ledger-1 "
        "(kafka.server.ReplicaManager)\n"
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number for producer 4 at "
        "offset 60 in partition ledger-1: 131 (incoming seq. number), 59 (current end sequence number)\n"
    )
    (incident,) = play(Story({**told.logs, "broker-2.log": told.logs["broker-2.log"] + gap}, told.labels))
    assert incident.rule == "broker-unclean-election"
    assert "producer-out-of-order-sequence" in {symptom.rule for symptom in incident.symptoms}


def _raft(id_: int, second: int, said: str) -> str:
    return f"[2026-11-21 20:04:{second:02},000] INFO [RaftManager id={id_}] {said} (org.apache.kafka.raft.KafkaRaftClient)\n"
