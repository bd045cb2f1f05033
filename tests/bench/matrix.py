"""What a line costs, whatever the log is like: inputs by shares of hits by numbers of rules, each beside the plain quiet one.

The logs are made of real ones (samples/goodlog, tests/captured), not written for this: their events drawn at random, with times
that go on and numbers of their own; behind wrappers as tests/wrapping puts them. What is not in one of these has no cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from random import Random

from engine.cache import DiskCache
from engine.match import Matcher
from engine.model.rules import Plan
from tests.bench.machine import say
from tests.bench.rulesets import plan_of
from tests.bench.scan import read_once
from tests.bench.tools import tools
from tests.rulepack.playing import SAMPLES, plan
from tests.wrapping import mingled, wrapped

CAPTURED = Path(__file__).parents[1] / "captured"
LINES = 100_000
HITS = (0.0, 0.01, 0.3, 1.0)  # shares of events drawn from logs of trouble
WRAPPERS = ("compose", "cri", "docker json", "journal", "ecs", "logstash", "shipper")
_STAMP = re.compile(r"(20\d\d-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)")
_NUMBER = re.compile(r"(?<![\w.:-])\d{3,9}(?![\w.:-])")
_BROKER = re.compile(r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]")
START = datetime(2026, 1, 1)


def measure(folder: Path) -> None:
    """Measure every cell and print."""
    plans = {"shipped": plan(), "20": plan_of(20, folder), "1,000": plan_of(1000, folder)}
    logs = {(name, hits): _written(folder, name, hits) for name in _INPUTS for hits in HITS}
    for rules, rule_set in plans.items():
        matcher = Matcher(rule_set, DiskCache())
        plain, regexes = 0.0, matcher.prefilter.signs
        for (name, hits), log in logs.items():
            first, second = _cost(rule_set, matcher, log)
            plain = plain or second
            beside = _beside(log, regexes, folder) if hits == 0.0 else ""
            say("result", f"{rules} rules, {name}, {hits:.0%}: {second:.2f} us a line ({first:.2f} at first), "
                f"{second / plain:.1f} times plain{beside}")  # fmt: skip


def _cost(rules: Plan, matcher: Matcher, log: Path) -> tuple[float, float]:
    """Return the CPU microseconds a line when nothing is known of a log, and when its texts are."""
    reader, first = read_once(rules, matcher, log, None)
    again = []
    for _ in range(2):
        reader, cost = read_once(rules, matcher, log, reader)
        again.append(cost)
    return first, min(again)


def _beside(log: Path, regexes: Sequence[str], folder: Path) -> str:
    ripgrep = tools().get("rg -j1")
    if ripgrep is None:
        return ""
    return f"; rg -j1 {ripgrep(log, regexes, folder) / LINES * 1e6:.2f}"


def _written(folder: Path, name: str, hits: float) -> Path:
    path = folder / f"{name.replace(' ', '-')}-{hits}.log"
    path.write_text("\n".join(islice(_INPUTS[name](hits), LINES)) + "\n", encoding="utf-8")
    return path


def _brokers(hits: float) -> Iterator[str]:
    return _lines(_events(SAMPLES / "goodlog", _BROKER), _events(CAPTURED, _BROKER), hits)


def _mixed(hits: float) -> Iterator[str]:
    return _lines(_events(SAMPLES / "goodlog"), _events(CAPTURED), hits)


def _services(hits: float) -> Iterator[str]:
    histories = [wrapped(_brokers(hits) if n % 2 else _mixed(hits), ("compose",), Random(n)) for n in range(6)]
    return mingled([_renamed(history, f"service-{n}") for n, history in enumerate(histories)], Random(1))


def _renamed(rows: Iterator[str], name: str) -> Iterator[str]:
    return (re.sub(r"^\S+", name, row, count=1) for row in rows)


def _lines(good: Sequence[str], bad: Sequence[str], hits: float, seed: int = 1) -> Iterator[str]:
    """Yield the lines of events drawn at random, with times that go on."""
    random, at = Random(seed), START
    while True:
        at += timedelta(milliseconds=random.randrange(1, 300))
        event = random.choice(bad if random.random() < hits else good)
        event = _STAMP.sub(lambda found, at=at: f"{at:%Y-%m-%d}{found[2]}{at:%H:%M:%S}", event, count=1)
        yield from _NUMBER.sub(lambda found: "".join(random.choices("0123456789", k=len(found[0]))), event).split("\n")


def _events(folder: Path, layout: re.Pattern[str] = _STAMP) -> Sequence[str]:
    """Return the events of all logs below a folder that begin in a layout."""
    events: list[str] = []
    for path in sorted(folder.rglob("*.log")):
        begun = False
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if layout.match(line) if layout is not _STAMP else layout.search(line[:40]):
                events.append(line)
                begun = True
            elif begun and not _STAMP.search(line[:40]):
                events[-1] += f"\n{line}"
            else:
                begun = False
    return events


_INPUTS = {"plain": _brokers, "mixed layouts": _mixed, "six services under compose": _services} | {
    name: lambda hits, name=name: wrapped(_brokers(hits), (name,), Random(1)) for name in WRAPPERS
}
