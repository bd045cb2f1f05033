"""What a scan judged: how many events of whom, and the reasons for which something was not judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from engine.cli.mixtures import Namings, undivided
from engine.cli.output import count
from engine.cli.strangers import MOST_IDS, SourceTraces, cluster_ids
from engine.cli.windows import ALL_TIMES, TimeWindow
from engine.model.incidents import Roster
from engine.model.matches import ActivitySpan, Match
from engine.model.phrases import moment
from engine.model.quarantine import DeadLetter
from engine.model.records import AnyEvent, Progress, parent_id
from engine.ports import Chunk

MOST_NAMES = 3  # of sources in a sentence
PROCESSES: Mapping[str, str] = {"broker": "broker", "controller": "controller", "connect": "Connect worker"}

CorrelatorInput = Match | ActivitySpan | Progress


class Coverage(Struct, frozen=True):
    """The extent of a scan: the input that was judged, and the gaps.

    Attributes:
        events: the number of events that were judged.
        sources: the number of sources with events.
        processes: the number of processes that printed their id, by kind: a noun in the singular.
        gaps: a sentence for each part of the input that was not judged, with reason and remedy.
        window: the bounds of the time that was judged, in words with a comma before them; empty without bounds.
    """

    events: int
    sources: int = 0
    processes: Mapping[str, int] = {}
    gaps: tuple[str, ...] = ()
    window: str = ""

    @property
    def extent(self) -> str:
        """The judged input as text: `2,310 events of 3 brokers`."""
        owners = [count(number, noun) for noun, number in self.processes.items()] or [count(self.sources, "source")]
        return f"{count(self.events, 'event')} of {' and '.join(owners)}{self.window}"


def without(coverage: Coverage, refused: Sequence[str], quarantined: Sequence[DeadLetter]) -> Coverage:
    """Return `coverage` with gaps for what could not be read (`refused`: a sentence for each part) and for dead letters."""
    more = f", and {count(len(refused) - 1, 'more part')} (see below)" if len(refused) > 1 else ""
    unread = [f"{sentence}{more}" for sentence in refused[:1]]
    failed = [f"{count(len(quarantined), 'part')} of the input could not be processed (see Aside)"]
    gaps = (*unread, *coverage.gaps, *(failed if quarantined else ()))
    return replace(coverage, gaps=gaps)


def within_window(coverage: Coverage, window: str, outside: tuple[datetime, datetime] | None, zone: ZoneInfo) -> Coverage:
    """Return `coverage` with the bounds of the time that was judged, and with a gap when no line lies within them.

    Args:
        window: the bounds in words.
        outside: the times of the first and of the last line when no line lies within the bounds; else None.
    """
    if outside is None:
        return replace(coverage, window=f", {window}")
    first, last = (moment(at.astimezone(zone)) for at in outside)
    empty = f"the time {window}: no line lies in it (lines are from {first} to {last}); give the logs of that time"
    return replace(coverage, window=f", {window}", gaps=(*coverage.gaps, empty))


class CoverageCollector:
    """Collects, while input is read, which sources have lines, times, and events that are recognised as log events.

    An event is recognised when its text has a time or a level, or when a rule matches it.

    Args:
        window: the times that are judged.
    """

    def __init__(self, window: TimeWindow = ALL_TIMES) -> None:
        self._window = window
        self._inside: set[str] = set()  # sources with times in the window
        self._lines: dict[str, None] = {}  # sources with lines
        self._dated: set[str] = set()
        self._recognised: set[str] = set()
        self._levelled: set[str] = set()
        self.namings = Namings()
        self._bare: dict[str, int] = {}  # events that are not recognised, by source
        self._times: dict[str, tuple[datetime, datetime]] = {}  # of the first and the last event, by source
        self._clusters: dict[str, set[str]] = {}  # ids that lines name, by source

    def input(self, items: Iterable[Chunk | Progress]) -> Iterator[Chunk | Progress]:
        """Yield `items` unchanged, noting the sources with lines."""
        for item in items:
            if isinstance(item, Chunk) and item.data.strip():
                source = parent_id(item.source_id)
                self._lines[source] = None
                if len(ids := self._clusters.setdefault(source, set())) < MOST_IDS:
                    ids.update(cluster_ids(item.data))
            yield item

    def findings(self, items: Iterable[CorrelatorInput]) -> Iterator[CorrelatorInput]:
        """Yield `items` unchanged, noting the sources with times."""
        for item in items:
            if isinstance(item, ActivitySpan):
                source = parent_id(item.source_id)
                self._dated.add(source)
                self._inside.update(source for _ in self._window.within((item,)))
                first, last = self._times.get(source, (item.first, item.last))
                self._times[source] = (min(first, item.first), max(last, item.last))
            elif isinstance(item, Match):
                self.namings.add(item)
                self._recognised.add(parent_id(item.source_id))
            yield item

    def observe(self, event: AnyEvent, matches: Sequence[Match]) -> None:
        """Note an event that was read by itself."""
        source = parent_id(event.source_id)
        if event.level:
            self._levelled.add(source)
        if event.timestamp is not None or event.level or matches:
            self._recognised.add(source)
        else:
            self._bare[source] = self._bare.get(source, 0) + 1

    def traces(self) -> list[SourceTraces]:
        """Return what shows to which collection each source with lines belongs."""
        times: Mapping[str, tuple[datetime | None, datetime | None]] = {**self._times}
        undated = (None, None)
        return [
            SourceTraces(source, *times.get(source, undated), clusters=frozenset(self._clusters.get(source, ())))
            for source in self._lines
        ]

    def coverage(self, events: int, rosters: Sequence[Roster], expected: Sequence[str], reported: Iterable[str]) -> Coverage:
        """Return what was judged.

        Args:
            events: the number of all events, or of those in a window that has a bound.
            expected: the ids of the brokers that the caller expects.
            reported: the ids of those whose absence an incident reports.
        """
        processes = _processes(rosters)
        foreign = [source for source in self._lines if source in self._bare and source not in self._recognised | self._dated]
        undated = [source for source in self._lines if source in self._levelled - self._dated]
        gaps = [*_nothing_read(self._lines), *_foreign(foreign), *_undated(undated)]
        gaps += [undivided(source, namings) for source, namings in self.namings.mixtures().items()]
        gaps += _never_active([id_ for id_ in expected if id_ not in reported], rosters)
        if not self._window.is_open:
            return Coverage(events, len(self._inside), processes if events else {}, tuple(gaps))
        judged = events - sum(self._bare[source] for source in foreign)
        return Coverage(judged, len(self._lines) - len(foreign), processes, tuple(gaps))

    def times(self) -> tuple[datetime, datetime] | None:
        """Return the times of the first and of the last event of all sources; None when no event has a time."""
        spans = self._times.values()
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _processes(rosters: Iterable[Roster]) -> Mapping[str, int]:
    members = {
        (noun, roster.scope, member)
        for roster in rosters
        for name, noun in PROCESSES.items()
        for member in roster.members.get(name, ())
    }
    numbers = {noun: sum(owner == noun for owner, _, _ in members) for noun in PROCESSES.values()}
    return {noun: number for noun, number in numbers.items() if number}


def _nothing_read(sources: Iterable[str]) -> list[str]:
    return [] if any(True for _ in sources) else ["there was no line to read; give the logs of the time in question"]


def _foreign(sources: Sequence[str]) -> list[str]:
    if not sources:
        return []
    return [
        f"{_named(sources)}: nothing in it is recognised as a log (no line has a time or a level that is known); give the log "
        "itself, or describe its layout (docs/rules.md, formats)"
    ]


def _undated(sources: Sequence[str]) -> list[str]:
    if not sources:
        return []
    return [
        f"{_named(sources)}: no date is recognised in its lines, so what depends on time (rates, orders, silence) is not "
        "judged; a log of that program with date and time can be"
    ]


def _never_active(missing: Sequence[str], rosters: Iterable[Roster]) -> list[str]:
    brokers = {member for roster in rosters for member in roster.members.get("broker", ())}
    ids = [id_ for id_ in missing if id_ not in brokers]
    if not ids:
        return []
    if len(ids) == 1:
        return [f"broker {ids[0]} was never heard: no line in what was read is of it; give its log too"]
    names = f"{', '.join(ids[:-1])} and {ids[-1]}"
    return [f"brokers {names} were never heard: no line in what was read is of them; give their logs too"]


def _named(sources: Sequence[str]) -> str:
    rest = len(sources) - MOST_NAMES
    return ", ".join(sources[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
