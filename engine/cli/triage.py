"""The work of `scan`: run bounded input through the stages and collect the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from engine.cache import DiskCache
from engine.cli.coverage import Coverage, CoverageCollector
from engine.cli.mixtures import Naming, divided, parts
from engine.cli.strangers import LogCollection, collections_of, labelled, sentence_about
from engine.cli.unknown import ERROR_SIGN, UnknownEvents, UnknownLines
from engine.cli.windows import ALL_TIMES, TimeWindow
from engine.columns.bounded import Bounded, ReadingCost
from engine.correlate import correlate
from engine.incident import MemoryLedger, group, minor
from engine.match import Matcher, Redactor
from engine.model.incidents import Incident, NotEvaluated
from engine.model.matches import COMPONENT_LINE, Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import LogEvent, Progress, RawLine
from engine.model.rules import SEVERITIES, Plan
from engine.ports import Chunk
from engine.quarantine import Quarantine

OVER = ("merged", "retracted")  # incidents with these states are not reported
MAX_PICKED = 50  # events: somebody picked out such a short piece of log and asks what it means
CALM = ("INFO", "DEBUG", "TRACE")  # levels that warn of nothing
PICKED = "this short piece of log is about it and shows nothing worse; in a stream more of it is waited for"


class Stats(Struct, frozen=True):
    """The amount of input. `matches` leaves out the lines in which components name themselves; `seconds` is wall time."""

    lines: int
    events: int
    matches: int
    seconds: float


class Triage(Struct, frozen=True):
    """The result of a scan.

    Attributes:
        incidents: the incidents in their final state, most severe first, then earliest.
        pending: the incidents that wait to be confirmed, in the same order.
        minor: matches that are no trouble until there are more of them, as incidents, earliest first. When a short piece of log
            ends in such a warning and shows nothing worse, the log is about it: then it is an incident of severity low. So is
            one that a correlation found in it.
        unknown: ERROR and FATAL events that no rule matches, in groups.
        blind: what was not evaluated, and why.
        quarantined: the dead letters.
        cost: what columns decided, and what the reference read.
        coverage: what was judged, and what was not and why.
        outside: the times of the first and of the last event when none lies in the window; None when one does, when the window
            has no bound, and when no event has a time.
        mixtures: by source, the lines in which several brokers name themselves in one stream.
        collections: the sources in groups that can have nothing to do with each other.
        audit: what the audit of `audited_blocks` blocks found, a text for each difference, without secrets.
    """

    incidents: tuple[Incident, ...]
    pending: tuple[Incident, ...]
    minor: tuple[Incident, ...]
    unknown: tuple[UnknownLines, ...]
    blind: tuple[NotEvaluated, ...]
    notes: tuple[str, ...]
    stats: Stats
    quarantined: tuple[DeadLetter, ...] = ()
    cost: ReadingCost = ReadingCost(0)
    audited_blocks: int = 0
    audit: tuple[str, ...] = ()
    coverage: Coverage = Coverage(0)
    outside: tuple[datetime, datetime] | None = None
    mixtures: Mapping[str, tuple[Naming, ...]] = {}
    collections: tuple[LogCollection, ...] = ()


class _EventCounts:
    """Counts events and matches, and collects unknown events and the matched events at the end of a short piece of log."""

    def __init__(self, redact: Redactor, window: TimeWindow) -> None:
        self._window = window
        self.events = self.matches = 0
        self.unknown = UnknownEvents(redact)
        self.coverage = CoverageCollector(window)
        self.warned: set[tuple[str, int]] = set()  # source and number of the event

    def observe(self, event: LogEvent, matches: list[Match]) -> None:
        self.events += 1
        self.matches += sum(not match.rule_id.startswith(COMPONENT_LINE) for match in matches)
        self.coverage.observe(event, matches)
        if event.timestamp is not None and not self._window.holds(event.timestamp):
            return
        self.unknown.observe(event, matches)
        if event.level in CALM or self.events > MAX_PICKED:
            self.warned.clear()
        else:
            self.warned |= {(match.source_id, match.number) for match in matches}


def triage_again(
    first: Triage,
    read: Callable[[], Iterable[Chunk | Progress]],
    plan: Plan,
    notes: list[str],
    *,
    one_cluster: bool = False,
    window: TimeWindow = ALL_TIMES,
    audited: bool = False,
) -> Triage:
    """Return the result of scanning the input that `read` returns once more with its mixtures divided and its collections
    judged apart; `first` when there is neither.

    Args:
        window, audited: see triage.
        one_cluster: all sources are of one cluster, as they are when the caller says which brokers to expect.
    """
    borders = {source: parts(namings, partial(_lines, read, source), plan) for source, namings in first.mixtures.items()}
    borders = {source: division for source, division in borders.items() if division}
    apart = first.collections if len(first.collections) > 1 and not (one_cluster or _expected(plan)) else ()
    if not borders and not apart:
        return first
    again = triage(divided(labelled(read(), apart), borders), plan, notes, audited, window)
    return replace(again, notes=(*again.notes, sentence_about(apart))) if apart else again


def _lines(read: Callable[[], Iterable[Chunk | Progress]], source: str, begin: int, end: int) -> Iterator[RawLine]:
    """Yield lines [begin, end) of a source, by number."""
    for item in read():
        if isinstance(item, Chunk) and item.source_id == source:
            if item.number >= end:
                return
            yield from (line for line in item.lines() if begin <= line.number < end)


def triage(
    input: Iterable[Chunk | Progress],
    plan: Plan,
    notes: list[str],
    audited: bool = False,
    window: TimeWindow = ALL_TIMES,
) -> Triage:
    """Return the result of scanning `input`: that of the reference pipeline, read in columns where there is enough of it.

    Args:
        notes: sentences for the report; `input` may append to them while it is read.
        audited: some of the blocks that columns read are also read by the reference.
        window: what is outside of it is read, and not judged.
    """
    started_at_s, matcher, ledger = time.perf_counter(), Matcher(plan, DiskCache()), MemoryLedger()
    counts, quarantine = _EventCounts(matcher.redact, window), Quarantine(matcher.redact)
    bounded = Bounded(plan, matcher, counts.observe, (ERROR_SIGN,), quarantine, audited, None if window.is_open else window)
    sightings = counts.coverage
    findings = correlate(window.within(sightings.findings(bounded.read(sightings.input(input)))), plan, quarantine)
    final = {i.id: i for i in group(findings, plan, ledger, quarantine)}
    reported = sorted((i for i in final.values() if i.status not in OVER), key=worst_first)
    minor_incidents = tuple(_minor(plan, ledger))
    quarantined = quarantine.taken()
    events, matches = counts.events + bounded.unobserved, counts.matches + bounded.unobserved_matches
    stats = Stats(bounded.lines, events, matches, time.perf_counter() - started_at_s)
    short = counts.events <= MAX_PICKED and not bounded.unobserved
    picked = _picked_incidents(minor_incidents, counts.warned, plan) if short and not reported else ()
    ids = {incident.id for incident in picked}
    absent = [incident.labels.get("broker", "") for incident in reported]
    coverage = sightings.coverage(events if window.is_open else bounded.within, ledger.rosters(), _expected(plan), absent)
    return Triage(
        incidents=picked or tuple(i for i in reported if not i.pending),
        pending=tuple(i for i in reported if i.pending),
        minor=tuple(i for i in minor_incidents if i.id not in ids),
        unknown=counts.unknown.groups(),
        blind=tuple(ledger.blinds()),
        notes=(*notes, *(item.sentence for item in quarantined if isinstance(item, Misdated))),
        stats=stats,
        quarantined=tuple(item for item in quarantined if isinstance(item, DeadLetter)),
        cost=bounded.cost,
        audited_blocks=bounded.audit.blocks if bounded.audit is not None else 0,
        audit=tuple(d.sentence(matcher.redact) for d in bounded.audit.differences) if bounded.audit is not None else (),
        coverage=coverage,
        outside=None if window.is_open or bounded.within else sightings.times(),
        mixtures=sightings.namings.mixtures(),
        collections=collections_of(sightings.traces()),
    )


def _expected(plan: Plan) -> list[str]:
    """Return the ids of the brokers that the caller expects."""
    return [id_.strip() for id_ in plan.context.get("brokers", "").split(",") if id_.strip()]


def _minor(plan: Plan, ledger: MemoryLedger) -> Iterator[Incident]:
    for scope in ledger.scopes():
        yield from minor(ledger.alerts(scope), plan, ledger.roster(scope), ledger.evidence, partial(ledger.picture, scope))


def _picked_incidents(incidents: Iterable[Incident], warned: Set[tuple[str, int]], plan: Plan) -> tuple[Incident, ...]:
    """Return the incidents that a short piece of log is about: of the events at its end, else of correlations."""
    correlations = {correlation.rule.id for correlation in plan.correlations}
    minor_incidents = tuple(incidents)
    at_end = [i for i in minor_incidents if any((event.source_id, event.number) in warned for event in i.evidence)]
    picked = at_end or _unique(i for i in minor_incidents if i.key[1] in correlations)
    return tuple(sorted((replace(i, severity="low", why=PICKED) for i in picked), key=worst_first))


def _unique(incidents: Iterable[Incident]) -> Iterable[Incident]:
    """Return one incident for each rule and entity: the one with the most symptoms."""
    by_symptoms = sorted(incidents, key=lambda incident: len(incident.symptoms))
    return {(incident.rule, *sorted(incident.labels.items())): incident for incident in by_symptoms}.values()


def worst_first(incident: Incident) -> tuple[int, str, str]:
    """Return the sort key of an incident: most severe first, then earliest."""
    return (-SEVERITIES.index(incident.severity), incident.first_seen.isoformat() if incident.first_seen else "", incident.id)
