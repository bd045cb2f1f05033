"""What a line costs, whatever the log is like: inputs by shares of hits by rules, beside the plain quiet cell and ripgrep.

The logs are made of real ones (tests/bench/real_logs). `rg` searches the quiet ones for the signs of the same rules.
A cell is what a line costs when the texts of a log are known, as in a long log; the cost of the first reading stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from random import Random

from engine.cache import DiskCache
from engine.match import Matcher
from engine.model.rules import Plan
from engine.spark.slices import stages
from tests.bench.job import bare
from tests.bench.machine import say
from tests.bench.producing import FILE, Producing
from tests.bench.real_logs import LAYOUTS, mixed_layouts, of_layouts, services
from tests.bench.rulesets import expressions, plan_of
from tests.bench.scan import read_once
from tests.bench.tools import head, tools
from tests.rulepack.playing import plan
from tests.servers.shipping import SHIPPERS, document
from tests.wrapping import wrapped

LINES = 50_000
DOCUMENTS = 30_000
HITS = (0.0, 0.01, 0.3, 1.0)  # shares of events that a rule matches
HOSTS = (1, 5, 100)
WRAPPERS = ("cri", "docker json", "journal", "ecs", "logstash")
PLAIN = "plain broker"
Log = Callable[[float], Iterator[str]]

INPUTS: Mapping[str, Log] = {
    **{name: lambda hits, formats=formats: of_layouts(formats, hits) for name, formats in LAYOUTS.items()},
    "eleven layouts mixed": mixed_layouts,
    "six services under Compose": services,
    **{
        f"{name} around plain": lambda hits, name=name: wrapped(of_layouts(LAYOUTS[PLAIN], hits), (name,), Random(1))
        for name in WRAPPERS
    },
}


def measure(folder: Path, address: str) -> None:
    """Measure every cell and print."""
    plans = {"shipped rules": plan(), "20 rules": plan_of(20, folder), "1,000 rules": plan_of(1000, folder)}
    logs = dict(_logs(folder))
    plain = {name: _files(name, rules, logs, folder) for name, rules in plans.items()}
    _shipped(plans, plain, address)


def _logs(folder: Path) -> Iterator[tuple[tuple[str, float], Path]]:
    """Write and yield the log of each input and share of hits."""
    for name, log in INPUTS.items():
        for hits in HITS:
            path = folder / f"{name.replace(' ', '-')}-{hits:g}.log"
            try:
                path.write_text("\n".join(islice(log(hits), LINES)) + "\n", encoding="utf-8")
            except LookupError as error:
                say("no cell", f"{name}, {hits:.0%} hits: {error}")
                continue
            yield (name, hits), path


def _files(rules: str, rule_set: Plan, logs: Mapping[tuple[str, float], Path], folder: Path) -> float:
    """Measure the cells of files with one set of rules; return the cost of the plain quiet one."""
    matcher, regexes = Matcher(rule_set, DiskCache()), expressions(rule_set)
    first_line = head(next(iter(logs.values())), 1, folder)
    start, plain = _ripgrep(first_line, regexes, folder), 0.0
    for (name, hits), log in logs.items():
        reader, first = read_once(rule_set, matcher, log, None)
        again = []
        for _ in range(2):
            reader, cost = read_once(rule_set, matcher, log, reader)
            again.append(cost)
        plain = plain or min(again)
        beside = ""
        if hits == 0.0:
            spent = _ripgrep(log, regexes, folder)
            beside = f"; rg -j1 {max(spent - start, 0.0) / LINES * 1e6:.2f}" if spent else "; rg: not installed"
        _say(rules, f"{name}, {hits:.0%} hits", min(again), plain, f" ({first:.1f} at first){beside}")
    return plain


def _ripgrep(log: Path, regexes: Sequence[str], folder: Path) -> float:
    """Return the CPU seconds that ripgrep takes with its start; 0 where it is not installed."""
    ripgrep = tools().get("rg -j1")
    return ripgrep(log, regexes, folder) if ripgrep is not None else 0.0


def _shipped(plans: Mapping[str, Plan], plain: Mapping[str, float], address: str) -> None:
    """Measure the cells of documents that are read from a real broker."""
    topics = {}
    for shipper in SHIPPERS:
        for hosts in HOSTS:
            for hits in HITS:
                with Producing(address, f"{shipper.replace(' ', '-')}-{hosts}-{hits:g}") as topic:
                    topic.send_records(_documents(shipper, hosts, hits))
                topics[f"{shipper} of {hosts} hosts, {hits:.0%} hits"] = topic
    for rules, rule_set in plans.items():
        worker = stages(rule_set)
        for name, topic in topics.items():
            _say(rules, name, bare(topic, worker), plain[rules])


def _documents(shipper: str, hosts: int, hits: float) -> Iterator[bytes]:
    logs = [(f"kafka-{number}", of_layouts(LAYOUTS[PLAIN], hits, number)) for number in range(hosts)]
    for number, (host, log) in enumerate(islice(cycle(logs), DOCUMENTS)):
        yield document(shipper, host, FILE, next(log), number)


def _say(rules: str, cell: str, cost: float, plain: float, more: str = "") -> None:
    say("result", f"{rules}; {cell}: {cost:.2f} us a line, {cost / plain:.1f} times the plain quiet cell{more}")
