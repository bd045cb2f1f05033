"""What the Spark job costs: CPU = a x lines + b x triggers, from files and from a real Kafka topic.

Each run is cut into batches of one size; the CPU between the ends of two batches is the cost of one. Two sizes make the line.
The first batches, in which the JVM still compiles, are left out of it and counted with the start.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from connectors.kafka import open_source
from engine.dsl import builtin_rules, load
from engine.spark.combining import combine
from engine.spark.slices import Scanned, WorkerStages, scan, stages
from tests.bench.corpus import JOB_RATE
from tests.bench.machine import corpus, say
from tests.bench.processes import running
from tests.bench.producing import Producing
from tests.bench.rulesets import made_rules

RULES = 1000
SIZES = (5_000, 65_000)  # lines of a batch: far enough apart that noise does not make the slope
BATCHES, WARMING = 40, 25  # of a run, and how many of them are not counted
READINGS = 3
_BATCH = re.compile(r"(?:tocsin: )?batch \d+: ([\d,]+) lines?")


class Spent(Struct, frozen=True):
    """The CPU seconds of a run: in all, and of each of its batches that counts."""

    total: float
    batches: Sequence[float]


def measure(folder: Path, address: str) -> None:
    """Measure both kinds of source and print."""
    made_rules(RULES, folder)
    logs = [corpus(folder, size * BATCHES, JOB_RATE) for size in SIZES]
    fitted("files", [spent(folder, f"files-{path.stem}", _files(path), size) for path, size in zip(logs, SIZES, strict=True)])
    topics = [_shipped(path, address) for path in logs]
    sources = [topic.source("earliest") for topic in topics]
    known = stages(load([builtin_rules(), made_rules(RULES, folder)]))
    say("result", f"the same topic read and scanned without Spark: {bare(topics[-1], known):.1f} s of CPU per million lines")
    ours = fitted("kafka", [spent(folder, f"kafka-{size}", source, size) for source, size in zip(sources, SIZES, strict=True)])
    counted = [_counted(address, topic.name, size) for topic, size in zip(topics, SIZES, strict=True)]
    floor = fitted("Spark's Kafka source and mapInArrow that counts", counted)
    say("result", f"the job takes {ours / floor:.2f} times the CPU a line of Spark's Kafka source with a count")


def spent(folder: Path, name: str, source: str, batch_lines: int) -> Spent:
    """Run a job over `source` in batches of `batch_lines` and return what it used."""
    config = folder / f"{name}.yml"
    config.write_text(
        f"sources: [{source}]\nroute: {{receiver: terminal}}\nstore: 'sqlite:///{name}.db'\n"
        f"spark: {{batch_lines: {batch_lines}}}\nrules: [builtin, rules-{RULES}]\n"
    )
    say("command", f"tocsin run -c {config.name} --once   # {source}, batch_lines: {batch_lines}")
    return _used(batch_lines, "engine.cli.main", "run", "-c", config, "--once")


def _counted(address: str, topic: str, batch_lines: int) -> Spent:
    """Let Spark alone count a topic in batches of `batch_lines` and return what that used."""
    say("command", f"python -m tests.bench.floor {address} {topic} {batch_lines}")
    return _used(batch_lines, "tests.bench.floor", address, topic, batch_lines)


def _used(batch_lines: int, *command: object) -> Spent:
    """Run a Python module that says how many lines each of its batches had, and return what it used."""
    marks: list[float] = []
    with running(*command) as session:
        for line in session.said():
            if (found := _BATCH.match(line)) is not None and int(found[1].replace(",", "")) >= batch_lines:
                marks.append(session.cpu_seconds())
        session.process.wait()
        total = session.cpu_seconds()
    return Spent(total, [after - before for before, after in zip(marks[WARMING - 1 :], marks[WARMING:], strict=False)])


def fitted(name: str, runs: Sequence[Spent]) -> float:
    """Print the line through the medians of two runs; return its CPU seconds a line."""
    few, many = (median(run.batches) for run in runs)
    each = (many - few) / (SIZES[1] - SIZES[0])
    trigger = few - each * SIZES[0]
    start = median(run.total - sum(run.batches) for run in runs)
    for size, run in zip(SIZES, runs, strict=True):
        shown = " ".join(f"{cost:.2f}" for cost in run.batches)
        say("measured", f"{name}, batches of {size:,} lines: {shown} s of CPU each; {run.total:.1f} s the whole run")
    say("result", f"{name}: {each * 1e6:.1f} s of CPU per million lines + {trigger:.2f} s per trigger; {start:.0f} s to start")
    return each


def _files(path: Path) -> str:
    return f"{{type: files, paths: [{path.name}], labels: {{cluster: bench}}, start: earliest}}"


def _shipped(path: Path, address: str) -> Producing:
    with Producing(address, f"bench-{path.stem}") as topic:
        for line in path.read_text(encoding="utf-8").splitlines():
            topic.send(line)
    return topic


def bare(topic: Producing, known: WorkerStages) -> float:
    """Return the CPU seconds per million lines of what the job's worker does, in this process, from its second reading on."""
    costs = []
    for _ in range(READINGS):
        source = open_source(topic.settings("earliest"))
        (slice_,) = source.partitions(source.initial(), source.latest(source.initial()))
        began = time.process_time()
        lines = sum(item.lines for item in combine(scan(source.chunks(slice_), known)) if isinstance(item, Scanned))
        costs.append((time.process_time() - began) / lines * 1e6)
    return min(costs)
