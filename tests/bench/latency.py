"""How long from a line being produced to Kafka until its incident stands in the outbox, at a steady rate of other lines."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import quantiles

from tests.bench.corpus import denied, quiet, stamp
from tests.bench.machine import say
from tests.bench.processes import Session, tocsin
from tests.bench.producing import FILE, HOST, Producing
from tests.servers.shipping import record

RATES = (1_000, 20_000, 50_000)  # lines per second
TRIGGER = "250ms"
WARMING_S, EVERY_S, FOR_S = 15.0, 2.0, 60.0
BURST_S = 0.01
POLL_S = 0.02
DIFFERENT = 10_000  # quiet lines
READY_WITHIN_S, TOLD_WITHIN_S = 240.0, 30.0


def measure(folder: Path, address: str, rate: int = RATES[0]) -> None:
    """Measure at `rate` lines per second and print."""
    say("corpus", f"tests/bench/corpus.py quiet lines, {rate:,} a second; every {EVERY_S:g} s one client is denied")
    with Producing(address, f"bench-latency-{rate}") as topic:
        config = folder / f"latency-{rate}.yml"
        store = folder / f"latency-{rate}.db"
        config.write_text(
            f"sources: [{topic.source('latest')}]\nroute: {{receiver: terminal}}\nstore: 'sqlite:///{store}'\n"
            f"spark: {{trigger: {TRIGGER}}}\n"
        )
        say("command", f"tocsin run -c {config.name}   # {topic.source('latest')}")
        with tocsin("run", "-c", config) as running:
            _report(_latencies(running, topic, store, rate))


def _latencies(running: Session, topic: Producing, store: Path, rate: int) -> Mapping[str, float | None]:
    """Return the seconds that each denial took, by principal; None for one that did not come."""
    ready = threading.Event()
    threading.Thread(target=_listen, args=(running, ready), daemon=True).start()
    sent: dict[str, float] = {}
    sending = threading.Thread(target=_send, args=(topic, ready, sent, rate))
    sending.start()
    seen = _watch(store, sending, sent)
    return {name: seen[name] - at if name in seen else None for name, at in sent.items()}


def _listen(running: Session, ready: threading.Event) -> None:
    for line in running.said():
        if line.startswith("tocsin: batch "):
            ready.set()


def _send(topic: Producing, ready: threading.Event, sent: dict[str, float], rate: int) -> None:
    """Send quiet lines, few until the job has read some, then at the rate; in a while a denial now and then, and note when."""
    load = Load()
    _keep_up(topic, load, RATES[0], lambda passed: not ready.is_set() and passed < READY_WITHIN_S)
    if not ready.is_set():
        say("measured", f"the job had read nothing after {READY_WITHIN_S:g} s")
        return

    def goes_on(passed: float) -> bool:
        if len(sent) * EVERY_S < min(passed - WARMING_S, FOR_S):
            name = f"User:app-{len(sent)}"
            sent[name] = time.time()
            topic.send(denied(datetime.now(UTC), name))
        return passed < WARMING_S + FOR_S + TOLD_WITHIN_S / 2  # the rate goes on while the last ones are on their way

    _keep_up(topic, load, rate, goes_on)


class Load:
    """Records of quiet lines, made beforehand but for their stamps: the machine is that of the job, too."""

    def __init__(self) -> None:
        random, at = Random(1), datetime.now(UTC)
        made = (record(HOST, FILE, quiet(at, random)).partition(stamp(at).encode()) for _ in range(DIFFERENT))
        self._parts = cycle([(before, behind) for before, _, behind in made])

    def records(self, count: int) -> Iterator[bytes]:
        """Yield `count` records of lines that are printed now."""
        now = stamp(datetime.now(UTC)).encode()
        return (before + now + behind for before, behind in islice(self._parts, count))


def _keep_up(topic: Producing, load: Load, rate: int, goes_on: Callable[[float], bool]) -> None:
    """Send what is due, lines a second, and rest for a moment, as long as `goes_on` after so many seconds."""
    began, lines = time.time(), 0
    while goes_on(passed := time.time() - began):
        topic.send_records(load.records(int(passed * rate) - lines))
        lines = int(passed * rate)
        time.sleep(BURST_S)


def _watch(store: Path, sending: threading.Thread, sent: Mapping[str, float]) -> Mapping[str, float]:
    """Return when each principal's incident was first seen in the outbox."""
    seen: dict[str, float] = {}
    known: set[str] = set()
    while sending.is_alive() or (len(seen) < len(sent) and time.time() - max(sent.values()) < TOLD_WITHIN_S):
        for id_ in _in_outbox(store) - known:
            known.add(id_)
            seen[_principal(store, id_)] = time.time()
        time.sleep(POLL_S)
    sending.join()
    return seen


def _in_outbox(store: Path) -> set[str]:
    return {id_ for (id_,) in _asked(store, "SELECT incident FROM outbox")}


def _principal(store: Path, incident: str) -> str:
    rows = _asked(store, f"SELECT json_extract(body, '$.labels.principal') FROM incidents WHERE id = '{incident}'")
    return str(rows[0][0]) if rows else ""


def _asked(store: Path, query: str) -> list[tuple[str, ...]]:
    if not store.exists():
        return []
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:  # its tables are being made
            return []


def _report(found: Mapping[str, float | None]) -> None:
    in_order = [each for each in found.values() if each is not None]
    took, lost = sorted(in_order), len(found) - len(in_order)
    if len(took) < 2:
        say("result", f"{len(took)} of {len(found)} lines came to the outbox: nothing to tell of")
        return
    p50, p95, p99 = (_at(took, percent) for percent in (50, 95, 99))
    say("measured", " ".join(f"{each:.2f}" for each in in_order) + " s, one after the other")
    say(
        "result",
        f"produced line to outbox row: p50 {p50:.2f} s, p95 {p95:.2f} s, p99 {p99:.2f} s, longest {took[-1]:.2f} s"
        f" ({len(took)} lines, {lost} not seen), trigger {TRIGGER}",
    )


def _at(took: Sequence[float], percent: int) -> float:
    return quantiles(took, n=100, method="inclusive")[percent - 1]
