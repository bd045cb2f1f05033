"""Clocks: how far each source has come in event time, and the watermark that follows from it.

Only event time counts. Ticks, where there are any, merely show which sources have stopped; the end of bounded input advances
no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field

from engine.correlate.spans import LineRange, Spans, union
from engine.model.matches import SEEN_GAP_S
from engine.model.records import Progress, Tick, parent_id

LATENESS = timedelta(seconds=30)
LEAVES_AFTER = timedelta(minutes=2)
AHEAD = timedelta(minutes=5)
GAP = timedelta(seconds=SEEN_GAP_S)
# a tick stands in for the time of peers only while these are active: never in a replay of old logs
_LIVE_WITHIN = timedelta(minutes=10)


class ClockState(Struct):
    """The clock of a source as it is stored.

    Attributes:
        spans: when it was active.
        progress: its last progress.
        moved: the tick at which its newest time last advanced.
        places: the range of positions of each span.
    """

    spans: list[tuple[datetime, datetime]] = field(default_factory=list)
    progress: Progress | None = None
    moved: datetime | None = None
    places: list[LineRange | None] = field(default_factory=list)


class _SourceClock:
    """The clock of a source: `printed` are the spans of its stamps, `denied` those that it contradicts, `spans` the others."""

    __slots__ = ("_reached", "denied", "moved", "printed", "progress", "spans")

    def __init__(self, state: ClockState | None = None) -> None:
        self.printed = Spans(GAP, state.spans, state.places) if state else Spans(GAP)
        self.progress = state.progress if state else None
        self.moved = state.moved if state else None
        self._reached = max((lines[1] for lines in self.printed.places if lines is not None), default=-1)
        self._judge()

    def add(self, first: datetime, last: datetime, place: int | None) -> bool:
        """Add a span; return whether that changed anything."""
        # a span that continues in order contradicts nothing, and is not contradicted
        goes_on = not self.printed or first > self.printed.last - AHEAD
        in_order = not self.denied and goes_on and (place is None or place >= self._reached)
        if not self.printed.add(first, last, None if place is None else (place, place)):
            return False
        self._reached = max(self._reached, -1 if place is None else place)
        if not in_order:
            self._judge()
        return True

    def _judge(self) -> None:
        """Separate the spans that the source itself contradicts from the others."""
        self.denied = self.printed.contradicted(AHEAD)
        self.spans = self.printed
        if self.denied:
            self.spans = Spans(GAP, (span for span in self.printed if span not in self.denied))


class Clocks:
    """The clocks of one scope's sources. `revision` grows whenever an answer may have changed.

    Args:
        ticking: whether `tick` is the present time. False in bounded input, where an earlier run may have left a tick.
    """

    def __init__(
        self, states: Mapping[str, ClockState] | None = None, tick: datetime | None = None, ticking: bool = True
    ) -> None:
        self._sources = {source_id: _SourceClock(state) for source_id, state in (states or {}).items()}
        self.tick, self._ticking = tick, ticking
        self.revision = 0

    def states(self) -> dict[str, ClockState]:
        """Return the states from which `Clocks(states, tick)` continues."""
        return {
            source_id: ClockState(list(source.printed), source.progress, source.moved, list(source.printed.places))
            for source_id, source in self._sources.items()
        }

    def add_activity(self, source_id: str, first: datetime, last: datetime, place: int | None = None) -> None:
        """Record that a source printed events from `first` to `last`, without a pause between.

        Args:
            place: the position of one of these events in their source; None where positions have no order.
        """
        source = self._sources.get(source_id)
        if source is None:
            source = self._sources[source_id] = _SourceClock()
        newest = source.spans.last if source.spans else None
        if source.add(first, last, place):
            self.revision += 1
        if newest is None or source.spans.last > newest:
            source.moved = self.tick

    def add_progress(self, progress: Progress) -> None:
        """Record how far a source has been read, or the file that several sources are printed into."""
        source = self._sources.setdefault(progress.source_id, _SourceClock())
        if source.progress != progress:
            source.progress = progress
            self.revision += 1

    def add_tick(self, tick: Tick) -> None:
        """Record processing time. It goes back only when a clock was set back, and no line confirms the later time."""
        if self.tick is not None and tick.at <= self.tick and not self._may_go_back(tick):
            return
        self.tick = tick.at
        self.revision += 1
        for source in self._sources.values():
            source.moved = min(source.moved or tick.at, tick.at)

    def sources(self) -> list[str]:
        """Return the sources that have printed dated events, sorted."""
        return sorted(source_id for source_id, source in self._sources.items() if source.spans)

    def spans(self, source_ids: Iterable[str]) -> Spans:
        """Return when any of `source_ids` was active."""
        spans = (self._sources[source_id].spans for source_id in source_ids if source_id in self._sources)
        return union(spans, GAP)

    def newest(self, source_id: str) -> datetime | None:
        """Return the newest event time of `source_id`; None when it printed no dated event."""
        source = self._sources.get(source_id)
        return source.spans.last if source is not None and source.spans else None

    def vouches(self, source_id: str, at: datetime) -> bool:
        """Return whether a stamp of `source_id` is credible: it is not ahead of those printed before and after it."""
        source = self._sources.get(source_id)
        return source is None or not any(first <= at <= last for first, last in source.denied)

    def contradicts_itself(self, source_id: str) -> bool:
        """Return whether `source_id` printed stamps that are ahead of those printed before and after them."""
        return bool(self._sources[source_id].denied)

    def progress_of(self, source_id: str) -> Progress | None:
        """Return the last progress of `source_id`, else of the file it is printed into; None without any."""
        for name in (source_id, parent_id(source_id)):
            source = self._sources.get(name)
            if source is not None and source.progress is not None:
                return source.progress
        return None

    def caught_up(self, source_id: str) -> bool:
        """Return whether `source_id` is known to have been read to its end."""
        progress = self.progress_of(source_id)
        return progress is not None and progress.caught_up

    def ahead(self, source_id: str) -> bool:
        """Return whether `source_id` prints times in the future: its clock or its time zone is wrong."""
        newest = self.newest(source_id)
        return self._ticking and self.tick is not None and newest is not None and newest - self.tick > AHEAD

    def watermark(self) -> datetime | None:
        """Return the watermark: the newest time of the least advanced live source, less the lateness; None without sources.

        A source does not count when it has been read to its final end, or has not moved for two minutes of ticks, as long as
        others remain.
        """
        dated = [source_id for source_id, source in self._sources.items() if source.spans]
        open_ended = [source_id for source_id in dated if not self._finished(source_id)] or dated
        live = [source_id for source_id in open_ended if not self._stopped(source_id)] or open_ended
        slowest = min((self._sources[source_id].spans.last for source_id in live), default=None)
        return None if slowest is None else slowest - LATENESS

    def peer_time(self, others: Iterable[datetime]) -> datetime | None:
        """Return the time that a member's peers have reached: the second newest of their newest times, or the only one.

        In a live run in which every source is caught up, the tick stands in for peers that print nothing. None without peers.
        """
        ranked = sorted(others, reverse=True)
        if not ranked:
            return None
        agreed = ranked[min(1, len(ranked) - 1)]
        if self.tick is not None and agreed < self.tick <= ranked[0] + _LIVE_WITHIN and self._all_caught_up():
            return self.tick
        return agreed

    def _may_go_back(self, tick: Tick) -> bool:
        newest = max((source.spans.last for source in self._sources.values() if source.spans), default=tick.at)
        return tick.set_back and newest <= tick.at + AHEAD

    def _all_caught_up(self) -> bool:
        return all(self.caught_up(source_id) for source_id, source in self._sources.items() if source.spans)

    def _finished(self, source_id: str) -> bool:
        progress = self.progress_of(source_id)
        return progress is not None and progress.closed and progress.caught_up

    def _stopped(self, source_id: str) -> bool:
        moved = self._sources[source_id].moved
        return self.tick is not None and moved is not None and self.tick - moved >= LEAVES_AFTER
