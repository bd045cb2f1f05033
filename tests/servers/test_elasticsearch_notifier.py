"""Incidents reach Elasticsearch once by id, whatever becomes of the notifier and of the cluster meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.model.incidents import Incident
from engine.model.notifications import Attempt
from engine.store import Store
from engine.store.store import BatchId
from tests.servers.elasticsearch import ElasticsearchNode, elasticsearch_node
from tests.servers.ending import Process, kill
from tests.unit.cli.incidents import incident

ROOT = Path(__file__).parents[2]
INCIDENTS, REVISIONS, KILLS = 12, 6, 5
WITHIN_S, POLL_S = 120.0, 0.01


@contextmanager
def notifying(store: str, node: ElasticsearchNode, name: str) -> Iterator[Process]:
    command = [sys.executable, "-m", "tests.servers.notifier_process", store, node.url, name, f"{name}-changes"]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process
    finally:
        kill(process)


def wait_until(holds: Callable[[], bool], process: Process) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert process.poll() is None, "the notifier ended"
        assert time.monotonic() < end, "the notifier comes to no end"
        time.sleep(POLL_S)


def revisions() -> list[list[Incident]]:
    """Return what each of some incidents was, revision by revision: every second one is a change."""
    severities = ("low", "medium", "high")
    return [
        [
            incident(id=f"inc-{number:02}", revision=revision, count=revision, severity=severities[(revision // 2) % 3])
            for revision in range(1, REVISIONS + 1)
        ]
        for number in range(INCIDENTS)
    ]


def attempts_of(store: Store) -> list[Attempt]:
    outbox = store.outbox()
    return [attempt for id_ in store.ids() for attempt in outbox.attempts(id_)]


def attempts(store: Store) -> int:
    return len(attempts_of(store))


def is_done(store: Store) -> bool:
    logs = store.outbox().notification_logs()
    return len(logs) == INCIDENTS and all(log.revision == REVISIONS for log in logs.values())


def documents(node: ElasticsearchNode, index: str) -> dict[str, int]:
    """Return the revision of every document."""
    node.call("POST", f"/{index}/_refresh")
    hits = node.call("GET", f"/{index}/_search?size=1000")["hits"]["hits"]
    assert len({hit["_id"] for hit in hits}) == len(hits)
    return {hit["_id"]: hit["_source"]["event"]["sequence"] for hit in hits}


def test_a_notifier_that_is_killed_again_and_again_writes_every_incident_and_every_change_once(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    url, name, choice = f"sqlite:///{tmp_path}/state.db", "tests-killed", random.Random(7)
    told = revisions()
    with closing(Store.open(url)) as store:
        rounds = [[each[number] for each in told] for number in range(REVISIONS)]
        for batch, revisions_of_round in enumerate(rounds[:KILLS]):
            with store.batch(BatchId("query", batch)) as ledger:
                ledger.put_incidents(revisions_of_round)
            enough = attempts(store) + choice.randint(1, INCIDENTS - 1)
            with notifying(url, elasticsearch, name) as process:
                wait_until(lambda least=enough: attempts(store) >= least, process)  # type: ignore[misc]
                kill(process)
        with store.batch(BatchId("query", KILLS)) as ledger:
            ledger.put_incidents(rounds[-1])
        with notifying(url, elasticsearch, name) as process:
            wait_until(lambda: is_done(store), process)
    assert documents(elasticsearch, name) == {each[0].id: REVISIONS for each in told}
    changed = {f"{each[0].id}-{revision}": revision for each in told for revision in (1, 2, 4, 6)}
    assert documents(elasticsearch, f"{name}-changes") == changed


@pytest.mark.slow
def test_a_cluster_that_is_away_and_then_has_too_much_to_do_gets_everything_in_the_end(
    elasticsearch: ElasticsearchNode, tmp_path: Path
) -> None:
    url, told = f"sqlite:///{tmp_path}/state.db", revisions()
    with elasticsearch_node(elasticsearch.home, tmp_path / "node") as node, closing(Store.open(url)) as store:
        with store.batch(BatchId("query", 0)) as ledger:
            ledger.put_incidents([each[0] for each in told])
        node.kill()
        with notifying(url, node, "tests-away") as process:
            wait_until(lambda: attempts(store) >= 2, process)
            for batch in range(1, REVISIONS):
                with store.batch(BatchId("query", batch)) as ledger:
                    ledger.put_incidents([each[batch] for each in told])
            node.settings["indexing_pressure.memory.limit"] = "10b"  # it has too much to do at once
            node.start()
            wait_until(lambda: any("status 429" in attempt.why for attempt in attempts_of(store)), process)
            node.kill()
            del node.settings["indexing_pressure.memory.limit"]
            node.start()
            wait_until(lambda: is_done(store), process)
        assert documents(node, "tests-away") == {each[0].id: REVISIONS for each in told}
        assert len(documents(node, "tests-away-changes")) == 4 * INCIDENTS
