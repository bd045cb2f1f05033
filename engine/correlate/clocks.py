"""Clocks: how far each source has come in event time, and what that allows to be judged.

Event time only. Ticks, where there are any, merely tell which sources have stopped moving; the end of bounded input
advances nothing.
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
# tick time stands in for peers only while they are heard from: never in a replay of old logs
_LIVE_WITHIN = timedelta(minutes=10)


class ClockState(Struct):
    """A source as it is stored: its spans, its last progress, and the tick at which its newest time last moved."""

    spans: list[tuple[datetime, datetime]] = field(default_factory=list)
    progress: Progress | None = None
    moved: datetime | None = None
    places: list[LineRange | None] = field(default_factory=list)


class _SourceClock:
    """`printed` is what its stamps say, `spans` what is believed of it, `denied` the rest."""

    __slots__ = ("_reached", "denied", "moved", "printed", "progress", "spans")

    def __init__(self, state: ClockState | None = None) -> None:
        self.printed = Spans(GAP, state.spans, state.places) if state else Spans(GAP)
        self.progress = state.progress if state else None
        self.moved = state.moved if state else None
        self._reached = max((where[1] for where in self.printed.places if where is not None), default=-1)
        self._judge()

    def add(self, first: datetime, last: datetime, place: int | None) -> bool:
        """Add a span; return whether that changed anything."""
        goes_on = (
            not self.printed or first > self.printed.last - AHEAD
        )  # what goes on in order is not denied, and denies nothing
        in_order = not self.denied and goes_on and (place is None or place >= self._reached)
        if not self.printed.add(first, last, None if place is None else (place, place)):
            return False
        self._reached = max(self._reached, -1 if place is None else place)
        if not in_order:
            self._judge()
        return True

    def _judge(self) -> None:
        """Leave out of what is believed what the source itself denies."""
        self.denied = self.printed.contradicted(AHEAD)
        self.spans = self.printed
        if self.denied:
            self.spans = Spans(GAP, (span for span in self.printed if span not in self.denied))


class Clocks:
    """The clocks of one scope's sources. `revision` grows whenever an answer may have changed.

    Args:
        ticking: whether `tick` is the present. Without, it has come and is past, as in a run that ends after one that did not.
    """

    def __init__(
        self, states: Mapping[str, ClockState] | None = None, tick: datetime | None = None, ticking: bool = True
    ) -> None:
        self._sources = {source_id: _SourceClock(state) for source_id, state in (states or {}).items()}
        self.tick, self._ticking = tick, ticking
        self.revision = 0

    def states(self) -> dict[str, ClockState]:
        """Return what `Clocks(states, tick)` continues from."""
        return {
            source_id: ClockState(list(source.printed), source.progress, source.moved, list(source.printed.places))
            for source_id, source in self._sources.items()
        }

    def add_activity(self, source_id: str, first: datetime, last: datetime, place: int | None = None) -> None:
        """Note that `source_id` spoke at `first`, at `last`, and without a pause between.

        Args:
            place: the position of one of these events in their source; None where it tells no order.
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
        """Note how far a source, or the file that holds several of them, has been read."""
        source = self._sources.setdefault(progress.source_id, _SourceClock())
        if source.progress != progress:
            source.progress = progress
            self.revision += 1

    def add_tick(self, tick: Tick) -> None:
        """Note processing time. It goes back only where a clock was set back and no line says that it was right before."""
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
        """Return when any of `source_ids` was heard from."""
        known = (self._sources[source_id].spans for source_id in source_ids if source_id in self._sources)
        return union(known, GAP)

    def newest(self, source_id: str) -> datetime | None:
        """Return the newest event time of `source_id`, None when it printed nothing dated."""
        source = self._sources.get(source_id)
        return source.spans.last if source is not None and source.spans else None

    def vouches(self, source_id: str, at: datetime) -> bool:
        """Return whether a stamp of `source_id` shows anything: not one ahead of what it printed before and after."""
        source = self._sources.get(source_id)
        return source is None or not any(first <= at <= last for first, last in source.denied)

    def contradicts_itself(self, source_id: str) -> bool:
        """Return whether `source_id` printed stamps that lie ahead of what it printed before and after them."""
        return bool(self._sources[source_id].denied)

    def progress_of(self, source_id: str) -> Progress | None:
        """Return the last progress of `source_id`, or of the file it is printed into."""
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
        """Return whether `source_id` prints times that have not come yet: its clock or its time zone is wrong."""
        newest = self.newest(source_id)
        return self._ticking and self.tick is not None and newest is not None and newest - self.tick > AHEAD

    def watermark(self) -> datetime | None:
        """Return the time before which nothing more is expected: the slowest live source's newest time, less the lateness.

        A source leaves the reckoning when it has been read to an end that is final, or has not moved for two minutes of
        ticks, if others remain.
        """
        speaking = [source_id for source_id, source in self._sources.items() if source.spans]
        open_ended = [source_id for source_id in speaking if not self._finished(source_id)] or speaking
        live = [source_id for source_id in open_ended if not self._stopped(source_id)] or open_ended
        slowest = min((self._sources[source_id].spans.last for source_id in live), default=None)
        return None if slowest is None else slowest - LATENESS

    def peer_time(self, others: Iterable[datetime]) -> datetime | None:
        """Return the time that a member's peers, by their newest times, agree has come: the second newest, or the only one.

        Live, with every source caught up, the tick stands in for peers that have nothing to say.
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
