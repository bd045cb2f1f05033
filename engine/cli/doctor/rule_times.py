"""Measure what the rules of a run cost: the time of their tests on its latest lines, here, by the reference matcher."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from connectors.files.finding import find
from engine.cache import DiskCache
from engine.cli.rulebook import configured_plan
from engine.config import Settings
from engine.errors import RulesError, SourceError, StoreError, UsageError
from engine.match import Matcher
from engine.match.fields import Fields
from engine.model.incidents import Evidence
from engine.model.records import LogEvent, RawLine
from engine.model.rules import Plan
from engine.model.searches import Search
from engine.parse import assemble, decode, unwrap
from engine.store import Store

MOST_FILES = 4
TAIL_BYTES = 128 << 10
MOST_INCIDENTS = 50
WITHIN_S = 2.0
ROUNDS = 3  # an event is measured so often, and the least time counts: the first compiles, others are disturbed
BUSY_S = 2.0
_PACKED = (".gz", ".zst", ".xz", ".bz2", ".zip")


class RuleCost(Struct, frozen=True):
    """The time of the tests of one rule on the events that it was tried on."""

    rule: str
    seconds: float
    events: int


class RuleTimes(Struct, frozen=True):
    """The times of the rules on `events` events, the costliest first; `seconds` is the time of all, the search for signs
    included."""

    events: int
    seconds: float
    costs: Sequence[RuleCost]


def measured(settings: Settings, elapsed_s: Callable[[], float]) -> RuleTimes | None:
    """Return the times of the rules of a configuration on its latest lines; None when the rules or lines cannot be had."""
    try:
        plan = configured_plan(settings)
    except (RulesError, UsageError):
        return None
    times = rule_times(plan, latest_lines(settings), elapsed_s)
    return times if times.events else None


def latest_lines(settings: Settings) -> Iterator[RawLine]:
    """Yield the last lines of files that sources read on this machine, then the evidence of the latest incidents."""
    with suppress(SourceError, OSError):
        paths = find([path for source in settings.sources for path in source.paths]).files
        for path in _newest(paths):
            yield from _tail(path)
    with suppress(StoreError, OSError):
        store = Store.open(settings.store, BUSY_S)
        try:
            incidents, _ = store.search(Search(), MOST_INCIDENTS)
        finally:
            store.close()
        yield from _lines_of(event for incident in incidents for event in incident.evidence)


def rule_times(plan: Plan, lines: Iterable[RawLine], elapsed_s: Callable[[], float]) -> RuleTimes:
    """Return the times of the rules of `plan` on the events in `lines`, for at most WITHIN_S seconds.

    Args:
        elapsed_s: a monotonic clock.
    """
    matcher, began_s = Matcher(plan, DiskCache()), elapsed_s()
    costs: dict[str, tuple[float, int]] = {}
    events, search_s = 0, 0.0
    for event in decode(assemble(unwrap(lines, plan.formats), plan.formats), plan.formats):
        if elapsed_s() > began_s + WITHIN_S:
            break
        if not isinstance(event, LogEvent):
            continue
        rounds = [_round(matcher, event, elapsed_s) for _ in range(ROUNDS)]
        events += 1
        search_s += min(round_[0] for round_ in rounds)
        for rule in rounds[0][1]:
            spent_s, tried = costs.get(rule, (0.0, 0))
            costs[rule] = spent_s + min(round_[1][rule] for round_ in rounds), tried + 1
    ordered = sorted(costs.items(), key=lambda cost: (-cost[1][0], cost[0]))
    of_rules = [RuleCost(rule, *cost) for rule, cost in ordered]
    return RuleTimes(events, search_s + sum(cost.seconds for cost in of_rules), of_rules)


def _round(matcher: Matcher, event: LogEvent, elapsed_s: Callable[[], float]) -> tuple[float, dict[str, float]]:
    """Return the time of the search for signs in an event, and that of each rule that may match it."""
    began_s, fields = elapsed_s(), Fields(event)
    possible = list(matcher.possible(fields))
    ended_s = elapsed_s()
    search_s, spent_s = ended_s - began_s, dict[str, float]()
    for detector in possible:
        began_s = elapsed_s()
        with suppress(Exception):  # a rule that fails is a dead letter of the run
            detector.check(fields)
        spent_s[detector.rule_id] = spent_s.get(detector.rule_id, 0.0) + elapsed_s() - began_s
    return search_s, spent_s


def _newest(paths: Iterable[str]) -> Sequence[str]:
    """Return the files that were written last; without those that are packed or gone."""
    stamped = []
    for path in paths:
        with suppress(OSError):
            stamped.append((Path(path).stat().st_mtime_ns, path))
    return [path for _, path in sorted(stamped, reverse=True) if not path.endswith(_PACKED)][:MOST_FILES]


def _tail(path: str) -> Iterator[RawLine]:
    """Yield the whole lines of the end of a file; none of one that cannot be read."""
    with suppress(OSError), Path(path).open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - TAIL_BYTES))
        lines = log.read().split(b"\n")
        yield from (RawLine(path, number, line) for number, line in enumerate(lines[size > TAIL_BYTES :]) if line)


def _lines_of(events: Iterable[Evidence]) -> Iterator[RawLine]:
    for number, event in enumerate(events):
        lines = enumerate(event.text.split("\n"))
        yield from (RawLine(f"{event.source_id}~{number}", at, line.encode()) for at, line in lines)
