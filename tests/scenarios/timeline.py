"""Time lines: a plain-text way to write what happens when, and what must then be said.

    plan storm                            the rules (a name of PLANS in test_scenarios.py)
    at 0s: match group-rebalanced {group: g}
    at 0s: seen b.log 0s 90s              a source was heard from, without a pause
    at 90s: read a.log                    a source was read to its end (`unread`: it was not)
    at 90s: tick
    at 90s: group-rebalance-loop g firing count=4 severity=high since=0s
    at 90s: group-rebalance-loop nothing

Items of a line may name their source after `on` (`match x {n: 1} on b.log`). An expectation is judged over everything above it;
its words are the values of the entity besides the cluster, then the status; `incident` before the rule expects an incident.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import yaml
from msgspec import Struct

from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress, Tick
from tests.building import START, match, progress, seen, tick

Item = Match | ActivitySpan | Progress | Tick

_LINE = re.compile(r"at (?P<at>\S+): (?P<what>.+)")
_MATCH = re.compile(r"match (?P<rule>\S+)(?: (?P<captures>\{.*\}))?(?: on (?P<source>\S+))?")
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class Expected(Struct, frozen=True):
    """What must be said of a rule: its alerts or incidents as texts (`g firing`), with the facts that each must have."""

    line: int
    rule: str
    incident: bool
    words: str  # entity values and status; "nothing"
    facts: Mapping[str, str]


class Timeline(Struct, frozen=True):
    """A scenario: its plan's name, and items and expectations in the order of the file."""

    plan: str
    steps: tuple[Item | Expected, ...]


def read(path: Path) -> Timeline:
    """Return the time line of a file. Raises ValueError with the line that cannot be read."""
    lines = [(number, line.partition("#")[0].strip()) for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)]
    told = [(number, line) for number, line in lines if line]
    plan = told[0][1].removeprefix("plan ")
    return Timeline(plan, tuple(_step(number, line, path) for number, line in told[1:]))


def seconds(text: str) -> float:
    """Return the seconds of `90s`, `1.5m`, `2h`. Raises KeyError for another unit."""
    number, unit = re.fullmatch(r"(-?[\d.]+)([a-z]+)", text).groups()  # type: ignore[union-attr]
    return float(number) * _UNIT_S[unit]


def written(at: datetime | None) -> str:
    """Return a time as a time line writes it, in seconds."""
    return "never" if at is None else f"{(at - START).total_seconds():g}s"


def _step(number: int, line: str, path: Path) -> Item | Expected:
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise ValueError(f"{path.name}:{number}: not `at TIME: ...`: {line}")
    word, _, rest = parts["what"].partition(" ")
    made = _ITEMS.get(word)
    return made(seconds(parts["at"]), rest) if made else _expected(number, parts["what"])


def _match(at: float, rest: str) -> Item:
    parts = _MATCH.fullmatch(f"match {rest}")
    assert parts is not None, rest
    captures = yaml.safe_load(parts["captures"] or "{}")
    return match(parts["rule"], at, parts["source"] or "a.log", **captures)


def _seen(at: float, rest: str) -> Item:
    source, first, last = rest.split()
    return seen(source, seconds(first), seconds(last))


_ITEMS: Mapping[str, Callable[[float, str], Item]] = {
    "match": _match,
    "seen": _seen,
    "read": lambda _, source: progress(source),
    "unread": lambda _, source: progress(source, caught_up=False),
    "tick": lambda at, _: tick(at),
}


def _expected(number: int, what: str) -> Expected:
    rule, *words = what.removeprefix("incident ").split()
    facts = dict(word.split("=", 1) for word in words if "=" in word)
    return Expected(number, rule, what.startswith("incident "), " ".join(w for w in words if "=" not in w), facts)


def scenarios(folder: Path) -> Iterator[Path]:
    """Yield the time lines of a folder, sorted."""
    yield from sorted(folder.glob("*.timeline"))
