"""What a store of 200,000 incidents costs, in SQLite and in PostgreSQL: its size, a batch, what the notifier asks, the list
of the pages, and a step of retention. It needs 5 GB of disk and a quarter of an hour.

The incidents are those of the stories again and again, every 20 seconds, on 20 clusters, each about things of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median, quantiles

from msgspec.structs import replace

from engine.incident import group
from engine.model.incidents import AlertKey, Incident
from engine.pipeline import replay
from engine.store import Store
from engine.store.store import BatchId
from engine.web.listing import list_incidents, parse_query
from tests.bench.machine import say
from tests.bench.stored import batches_of_findings
from tests.rulepack.playing import plan
from tests.servers.postgresql import postgres_server
from tests.spark.finals import STORIES, lines

INCIDENTS, OPEN, SCOPES = 200_000, 50, 20  # 5 years of 100 a day
EVERY = timedelta(seconds=20)
_AT_ONCE, _PROGRESS, _ROUNDS = 5_000, 50_000, 3


def measure(folder: Path) -> None:
    """Fill and measure both, SQLite first, and print."""
    address = folder / "full.db"
    _measure("SQLite", f"sqlite:///{address}")
    say("result", f"SQLite: {sum(path.stat().st_size for path in folder.glob('full.db*')) / 1e9:.1f} GB")
    address.unlink()
    with postgres_server(("fsync=off", "shared_buffers=256MB", "max_wal_size=4GB")) as server:
        _measure("PostgreSQL", server.empty_store())
        size = sum(path.stat().st_size for path in (server.folder / "data" / "base").rglob("*") if path.is_file())
        say("result", f"PostgreSQL: {size / 1e9:.1f} GB")


def _measure(name: str, address: str) -> None:
    now = datetime.now(UTC)
    with closing(Store.open(address)) as store:
        empty = _batch_times(store, 0)
        _fill(store, now)
        full = _batch_times(store, len(empty))
        say("result", f"{name}: a batch {_times(full)}; in an empty store {_times(empty)}")
        last, _ = store.changed_since(INCIDENTS - 1)
        asked: dict[str, Callable[[], object]] = {
            "what the notifier asks after each batch": lambda: store.changed_since(last - 10),
            "the list": lambda: list_incidents(store, parse_query(()), now),
            "the list, page 100": lambda: list_incidents(store, parse_query((("page", "100"),)), now),
            "the list of one cluster": lambda: list_incidents(store, parse_query((("cluster", "cluster-3"),)), now),
            "the list with a word that does not occur": lambda: list_incidents(store, parse_query((("q", "no-such"),)), now),
            "the list with a label": lambda: list_incidents(store, parse_query((("label", "broker=1"),)), now),
            "stats of the rules over 30 days": lambda: store.rule_stats(now - timedelta(days=30)),
            "a step of retention that finds nothing": lambda: store.prune(now - timedelta(days=1)),
            "a step of retention that removes 500": lambda: store.prune(now + timedelta(days=1), 500),
        }
        for what, ask in asked.items():
            say("measured", f"{name}: {what}: {_times([_wall_s(ask) for _ in range(_ROUNDS)])}")


def _fill(store: Store, now: datetime) -> None:
    originals = [
        incident for story in STORIES for incident in {i.id: i for i in replay(lines(story, story.name), plan())}.values()
    ]
    for first in range(0, INCIDENTS, _AT_ONCE):
        with store.amending() as ledger:
            ledger.put_incidents(_copy(originals[n % len(originals)], n, now) for n in range(first, first + _AT_ONCE))
        if (first + _AT_ONCE) % _PROGRESS == 0:
            say("filled", f"{first + _AT_ONCE:,} incidents")


def _copy(incident: Incident, number: int, now: datetime) -> Incident:
    """Return an incident as number `number`: resolved unless it is one of the last, about things of its own."""
    at = now - (INCIDENTS - number) * EVERY
    is_open = number >= INCIDENTS - OPEN
    return replace(
        incident,
        id=f"inc-{number:012x}",
        revision=1,
        key=_key(incident.key, number),
        alerts=tuple(_key(key, number) for key in incident.alerts),
        first_seen=at,
        last_seen=at,
        status="open" if is_open else "resolved",
        resolved_at=None if is_open else at + timedelta(hours=1),
    )


def _key(key: AlertKey, number: int) -> AlertKey:
    _, rule, entity = key
    return f"cluster-{number % SCOPES}", rule, tuple((label, f"{value}-{number}") for label, value in entity)


def _batch_times(store: Store, first: int) -> list[float]:
    """Return the wall time of each batch of the stories, put in as the batches from `first` on."""
    return [_wall_s(partial(_put, store, number, findings)) for number, findings in enumerate(batches_of_findings(), first)]


def _put(store: Store, number: int, findings: Sequence[object]) -> None:
    with store.batch(BatchId("bench", number)) as ledger:
        list(group(findings, plan(), ledger, None))


def _wall_s(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _times(walls: Sequence[float]) -> str:
    worst = quantiles(walls, n=20)[-1] if len(walls) > _ROUNDS else max(walls)
    return f"{1000 * median(walls):,.0f} ms, {1000 * worst:,.0f} at worst"
