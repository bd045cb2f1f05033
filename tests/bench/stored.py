"""What a batch costs in the store: the findings of the stories, put in batch by batch, in SQLite and in PostgreSQL."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.correlate import correlate
from engine.incident import group
from engine.match import match
from engine.parse import assemble, decode, unwrap
from engine.store import Store
from engine.store.store import BatchId
from tests.bench.machine import say
from tests.rulepack.playing import plan
from tests.servers.postgresql import postgres_server
from tests.spark.finals import STORIES, lines

IN_A_BATCH = 5
ROUNDS = 4


def measure(folder: Path) -> None:
    """Print the wall time of a batch in each database, the median and the 95th percentile, and their ratio."""
    batches = list(batches_of_findings())
    say("store", f"{len(batches)} batches of {IN_A_BATCH} findings, {ROUNDS} rounds in turn")
    with postgres_server(("fsync=on",)) as server:
        times: dict[str, list[float]] = {"SQLite": [], "PostgreSQL": []}
        for number in range(ROUNDS):
            times["SQLite"] += _times(f"sqlite:///{folder}/store-{number}.db", batches)
            times["PostgreSQL"] += _times(server.empty_store(), batches)
    for name, walls in times.items():
        say("store", f"{name}: {statistics.median(walls):.1f} ms a batch, p95 {statistics.quantiles(walls, n=20)[-1]:.1f} ms")
    say("store", f"PostgreSQL / SQLite: {statistics.median(times['PostgreSQL']) / statistics.median(times['SQLite']):.2f}")


def batches_of_findings() -> Sequence[list[Any]]:
    """Return the findings of the stories, IN_A_BATCH at a time."""
    findings = [item for story in STORIES for item in _findings(story)]
    return [findings[first : first + IN_A_BATCH] for first in range(0, len(findings), IN_A_BATCH)]


def _findings(story: Path) -> list[Any]:
    rules = plan()
    records = unwrap(lines(story, story.name), rules.formats, None)
    events = decode(assemble(records, rules.formats, None), rules.formats, None)
    return list(correlate(match(events, rules, None, None), rules, None))


def _times(address: str, batches: Sequence[list[Any]]) -> list[float]:
    walls = []
    with closing(Store.open(address)) as store:
        for number, findings in enumerate(batches):
            began = time.perf_counter()
            with store.batch(BatchId("bench", number)) as ledger:
                list(group(findings, plan(), ledger, None))
            walls.append(1000 * (time.perf_counter() - began))
    return walls
