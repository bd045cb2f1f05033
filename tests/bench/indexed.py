"""What it costs to read and match what shippers indexed, beside the bare client that pages through the same documents."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from elasticsearch import Elasticsearch

from connectors.elasticsearch import source as sources
from engine.dsl import builtin_rules, load
from engine.ports import Chunk
from engine.spark.combining import combine
from engine.spark.slices import Scanned, scan, stages
from tests.bench.corpus import JOB_RATE, lines
from tests.bench.machine import say
from tests.servers.elasticsearch import elasticsearch_node
from tests.servers.indexing import SHAPES, Index, Line
from tests.servers.search_home import search_home

LINES = 60_000
PAGE = 5000
READINGS = 5

Reading = Callable[[], int]  # returns how many documents it read


def measure(folder: Path) -> None:
    """Measure each shape of document and print."""
    known = stages(load([builtin_rules()]))
    with elasticsearch_node(search_home(), folder / "elasticsearch") as node:
        say("corpus", f"tests/bench/corpus.py, {LINES:,} lines, {JOB_RATE:.2%} of the events hit; Elasticsearch {node.version}")
        for shape in SHAPES:
            index = Index(node, **{"translog.durability": "async"})
            index.write(map(SHAPES[shape], _lines()))
            index.call("POST", "_refresh")
            client = Elasticsearch(node.url, request_timeout=60)
            readings: dict[str, Reading] = {
                "the bare client": lambda client=client, name=index.name: _paged(client, name),  # type: ignore[misc]
                "the source": lambda index=index: sum(chunk.data.count(b"\n") for chunk in _chunks(index)),  # type: ignore[misc]
                "the source, matched": lambda index=index: _scanned(index, known),  # type: ignore[misc]
            }
            costs = _in_turn(readings)
            client.close()
            bare = costs["the bare client"]
            for name, cost in costs.items():
                say(
                    "result",
                    f"{shape}, {name}: {cost:.1f} s of CPU per million documents, {cost / bare:.2f} of the bare client",
                )


def _in_turn(readings: dict[str, Reading]) -> dict[str, float]:
    """Return the CPU seconds per million documents of each reading, the median of several in turn; the first is not counted."""
    costs: dict[str, list[float]] = {name: [] for name in readings}
    for _ in range(READINGS + 1):
        for name, reading in readings.items():
            began = time.process_time()
            count = reading()
            assert count == LINES, f"{name} read {count}"
            costs[name].append((time.process_time() - began) / count * 1e6)
    return {name: median(some[1:]) for name, some in costs.items()}


def _paged(client: Elasticsearch, name: str) -> int:
    """Page through an index with the client as it is, from a point in time, in the order that is the cheapest."""
    pit = client.open_point_in_time(index=name, keep_alive="1m")["id"]
    count, after = 0, dict[str, Any]()
    while True:
        view = {"id": pit, "keep_alive": "1m"}
        page = client.search(pit=view, sort=["_shard_doc"], size=PAGE, track_total_hits=False, **after)
        hits = page["hits"]["hits"]
        count += len(hits)
        if len(hits) < PAGE:
            client.close_point_in_time(id=pit)
            return count
        after = {"search_after": hits[-1]["sort"]}


def _chunks(index: Index) -> Iterator[Chunk]:
    sources._MEMORIES.clear()  # what was read before is known, and would be left out
    source = index.source(start="earliest")
    start = source.initial()
    for slice_ in source.partitions(start, source.latest(start)):
        yield from source.chunks(slice_)


def _scanned(index: Index, known: Any) -> int:
    return sum(item.lines for item in combine(scan(_chunks(index), known)) if isinstance(item, Scanned))


def _lines() -> Iterator[Line]:
    offset = 0
    for number, text in enumerate(islice("\n".join(lines(LINES, hits=JOB_RATE)).split("\n"), LINES)):
        yield Line("kafka-1", "/var/log/kafka/server.log", text, offset, number)
        offset += len(text.encode()) + 1
