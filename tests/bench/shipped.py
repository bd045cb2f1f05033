"""What it costs to read and scan what shippers write into a topic, in a bare process: of one host, and of several in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from engine.dsl import builtin_rules, load
from engine.spark.slices import stages
from tests.bench.corpus import JOB_RATE, lines
from tests.bench.job import bare
from tests.bench.machine import say
from tests.bench.producing import FILE, Producing
from tests.servers.shipping import SHIPPERS, document

LINES = 100_000
HOSTS = (1, 5, 100)


def measure(_folder: Path, address: str) -> None:
    """Measure each shipper and print."""
    known = stages(load([builtin_rules()]))
    say("corpus", f"tests/bench/corpus.py, {LINES:,} lines, {JOB_RATE:.2%} of the events hit; hosts take turns line by line")
    for shipper in SHIPPERS:
        for hosts in HOSTS:
            with Producing(address, f"{shipper.replace(' ', '-')}-{hosts}") as topic:
                topic.send_records(_documents(shipper, hosts))
            say("result", f"{shipper}, {hosts} hosts: {bare(topic, known):.1f} s of CPU per million lines")


def _documents(shipper: str, hosts: int) -> Iterator[bytes]:
    logs = [(f"kafka-{number}", _log(number, LINES // hosts)) for number in range(hosts)]
    for number, (host, log) in enumerate(islice(cycle(logs), LINES)):
        yield document(shipper, host, FILE, next(log), number)


def _log(seed: int, count: int) -> Iterator[str]:
    return iter("\n".join(lines(count, seed, JOB_RATE)).split("\n"))
