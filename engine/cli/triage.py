"""What `scan` finds out: runs the reference pipeline over bounded input and gathers everything worth telling."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.cli.unknown import UnknownEvents, UnknownLines
from engine.incident import MemoryLedger
from engine.match import redact
from engine.model.incidents import Blind, Incident
from engine.model.matches import Match
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import SEVERITIES, Plan
from engine.pipeline import replay

OVER = ("merged", "retracted")  # an incident in one of these states is no finding of its own


@dataclass(frozen=True, slots=True)
class Stats:
    """How much was read and seen; `seconds` is wall time."""

    lines: int
    events: int
    matches: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Triage:
    """The answer of a scan. Incidents and pending ones are in their final state, most severe first, then earliest."""

    incidents: tuple[Incident, ...]
    pending: tuple[Incident, ...]
    unknown: tuple[UnknownLines, ...]
    blind: tuple[Blind, ...]
    notes: tuple[str, ...]
    stats: Stats


class _Counts:
    """Counts what passes and hands on what no rule knows."""

    def __init__(self) -> None:
        self.lines = self.events = self.matches = 0
        self.unknown = UnknownEvents(redact)

    def lines_of(self, input: Iterable[RawLine | Progress]) -> Iterator[RawLine | Progress]:
        for item in input:
            self.lines += isinstance(item, RawLine)
            yield item

    def observe(self, event: LogEvent, matches: list[Match]) -> None:
        self.events += 1
        self.matches += len(matches)
        self.unknown.observe(event, matches)


def triage(input: Iterable[RawLine | Progress], plan: Plan, notes: list[str]) -> Triage:
    """Run `input` through the reference pipeline and return what it shows.

    Args:
        notes: sentences for the reader; `input` may add to them while it is read.
    """
    began, counts, ledger = time.perf_counter(), _Counts(), MemoryLedger()
    final = {i.id: i for i in replay(counts.lines_of(input), plan, ledger, counts.observe)}
    told = sorted((i for i in final.values() if i.status not in OVER), key=_worst_first)
    stats = Stats(counts.lines, counts.events, counts.matches, time.perf_counter() - began)
    return Triage(
        incidents=tuple(i for i in told if not i.pending),
        pending=tuple(i for i in told if i.pending),
        unknown=counts.unknown.groups(),
        blind=tuple(ledger.blinds()),
        notes=tuple(notes),
        stats=stats,
    )


def _worst_first(incident: Incident) -> tuple[int, str, str]:
    return (-SEVERITIES.index(incident.severity), incident.first_seen.isoformat() if incident.first_seen else "", incident.id)
