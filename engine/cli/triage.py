"""What `scan` finds out: reads bounded input through the stages and gathers everything worth telling."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.cache import DiskCache
from engine.cli.unknown import COMPONENT_LINE, ERROR_SIGN, UnknownEvents, UnknownLines
from engine.correlate import correlate
from engine.incident import MemoryLedger, group, minor
from engine.match import Matcher, Redactor
from engine.model.incidents import Incident, NotEvaluated
from engine.model.matches import Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import AnyEvent, Progress
from engine.model.rules import SEVERITIES, Plan
from engine.ports import Chunk
from engine.quarantine import Quarantine
from engine.skim.whole import Whole

if TYPE_CHECKING:
    from engine.skim.sight import Sight

OVER = ("merged", "retracted")  # an incident in one of these states is no finding of its own
MOST_PICKED = 50  # events; whoever shows so few picked them out, and asks what they mean
CALM = ("INFO", "DEBUG", "TRACE")  # levels at which a program warns of nothing
PICKED = "this short piece of log ends in it and shows nothing worse; in a stream more of it is waited for"


class Stats(Struct, frozen=True):
    """How much was there: `matches` are those of rules, not of the lines in which a component names itself; `seconds` is wall
    time."""

    lines: int
    events: int
    matches: int
    seconds: float


class Triage(Struct, frozen=True):
    """The answer of a scan. Incidents and pending ones are in their final state, most severe first, then earliest.

    `minor` is what rules know that is no trouble until there is more of it, earliest first. A short piece of log that ends in a
    warning of it and shows nothing worse is about just that: then it is an incident of severity low. `quarantined` is what
    could not be judged.
    """

    incidents: tuple[Incident, ...]
    pending: tuple[Incident, ...]
    minor: tuple[Incident, ...]
    unknown: tuple[UnknownLines, ...]
    blind: tuple[NotEvaluated, ...]
    notes: tuple[str, ...]
    stats: Stats
    quarantined: tuple[DeadLetter, ...] = ()


class _EventCounts:
    """Counts the events that are read, and notes those that no rule knows and those that warn with nothing calm after them."""

    def __init__(self, redact: Redactor) -> None:
        self.events = self.matches = 0
        self.unknown = UnknownEvents(redact)
        self.warned: set[tuple[str, int]] = set()  # source and number of the event

    def observe(self, event: AnyEvent, matches: list[Match]) -> None:
        self.events += 1
        self.matches += sum(not match.rule_id.startswith(COMPONENT_LINE) for match in matches)
        self.unknown.observe(event, matches)
        if event.level in CALM or self.events > MOST_PICKED:
            self.warned.clear()
        else:
            self.warned |= {(match.source_id, match.number) for match in matches}


def triage(input: Iterable[Chunk | Progress], plan: Plan, notes: list[str]) -> Triage:
    """Read `input`, leaving out what says nothing, and return what it shows: what the reference pipeline would find.

    Args:
        notes: sentences for the reader; `input` may add to them while it is read.
    """
    began, matcher, ledger = time.perf_counter(), Matcher(plan, DiskCache()), MemoryLedger()
    counts, aside = _EventCounts(matcher.redact), Quarantine(matcher.redact)
    whole = Whole(plan, matcher, lambda: _sight(plan, matcher), counts.observe, aside)
    findings = correlate(whole.read(input), plan, aside)
    final = {i.id: i for i in group(findings, plan, ledger, aside)}
    told = sorted((i for i in final.values() if i.status not in OVER), key=worst_first)
    lesser = tuple(_minor(plan, ledger))
    put_aside = aside.taken()
    stats = Stats(whole.lines, counts.events + whole.left_out, counts.matches, time.perf_counter() - began)
    picked = _picked(lesser, counts.warned) if not told and not whole.left_out else ()
    ids = {each.id for each in picked}
    return Triage(
        incidents=picked or tuple(i for i in told if not i.pending),
        pending=tuple(i for i in told if i.pending),
        minor=tuple(i for i in lesser if i.id not in ids),
        unknown=counts.unknown.groups(),
        blind=tuple(ledger.blinds()),
        notes=(*notes, *(each.sentence for each in put_aside if isinstance(each, Misdated))),
        stats=stats,
        quarantined=tuple(each for each in put_aside if isinstance(each, DeadLetter)),
    )


def _minor(plan: Plan, ledger: MemoryLedger) -> Iterator[Incident]:
    for scope in ledger.scopes():
        yield from minor(ledger.alerts(scope), plan, ledger.roster(scope), ledger.evidence)


def _picked(lesser: Iterable[Incident], warned: Set[tuple[str, int]]) -> tuple[Incident, ...]:
    found = (i for i in lesser if any((event.source_id, event.number) in warned for event in i.evidence))
    return tuple(sorted((replace(i, severity="low", why=PICKED) for i in found), key=worst_first))


def _sight(plan: Plan, matcher: Matcher) -> Sight:
    from engine.skim.sight import sight_of  # noqa: PLC0415  (numpy, which a small scan does without)

    return sight_of(matcher, plan.formats, also=(ERROR_SIGN,))


def worst_first(incident: Incident) -> tuple[int, str, str]:
    """Return what to sort incidents by: most severe first, then earliest."""
    return (-SEVERITIES.index(incident.severity), incident.first_seen.isoformat() if incident.first_seen else "", incident.id)
