"""A follower that loses its leader for a moment is no trouble once replicas are in sync again; one that keeps losing it is."""

from __future__ import annotations

import pytest

from tests.rulepack.playing import Story, one, play

pytestmark = pytest.mark.slow

LOST = (
    "[2026-11-21 10:{minute:02d}:{second:02d},558] WARN [ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Error in "
    "response for fetch request (type=FetchRequest, replicaId=1) (kafka.server.ReplicaFetcherThread)\n"
    "java.io.IOException: Connection to 2 was disconnected before the response was read\n"
)
BACK = {
    "until_2_6": "Expanding ISR from 1 to 1,2",
    "since_2_7": "ISR updated to 1,2 and version updated to [8]",
}
AGAIN = "[2026-11-21 10:{minute:02d}:40,001] INFO [Partition orders-0 broker=1] {said} (kafka.cluster.Partition)\n"


@pytest.mark.parametrize("said", BACK.values(), ids=BACK)
def test_a_leader_that_is_back_is_no_trouble(said: str) -> None:
    log = LOST.format(minute=0, second=2) + AGAIN.format(minute=0, said=said)
    assert [incident.rule for incident in play(Story({"server.log": log})) if incident.severity != "info"] == []


def test_a_leader_that_is_not_back_is_one() -> None:
    assert one(Story({"server.log": LOST.format(minute=0, second=2)})).rule == "broker-replica-fetch-connection"


def test_a_leader_that_is_lost_for_long_is_one_whatever_came_back() -> None:
    lost = "".join(LOST.format(minute=at // 60, second=at % 60) for at in range(0, 150, 5))
    log = lost + AGAIN.format(minute=2, said=BACK["since_2_7"])
    assert one(Story({"server.log": log})).rule == "broker-replica-fetch-connection"
