"""Heartbeats of a component's members: lines that a version prints at a fixed pace. They arm the verdict on a silence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.correlate.facts import Facts
from engine.correlate.runs import Ends, Runs
from engine.correlate.tables import RunsTable
from engine.correlate.versions import within
from engine.model.incidents import Alert, Evidence, evidence_of
from engine.model.matches import Match
from engine.model.rules import Component

MISSED = 2.5  # times the cadence of a heartbeat that a member may be silent
_STEADY = 1.5  # beats closer than this times their cadence are consecutive; a run that long holds at least three

Beat = tuple[str, int]  # source, number of the component's heartbeat


class ArmedHeartbeat(Struct, frozen=True):
    """A heartbeat that a member printed until its silence: its interval, and the last one printed."""

    every: timedelta
    last: Evidence


class Heartbeats:
    """The heartbeats of one component, as runs of consecutive beats by source and kind."""

    def __init__(self, component: Component) -> None:
        self._component = component
        encoding = list[tuple[Beat, list[Ends[Evidence]]]]
        self.runs: RunsTable[Beat, Evidence] = RunsTable(encoding, lambda beat: self._steady(beat[1]))

    @property
    def rule_id(self) -> str:
        """The id under which heartbeat lines are matched."""
        return f"component:{self._component.name}/heartbeat"

    def add(self, match: Match) -> None:
        """Add a heartbeat line."""
        self.runs.add((match.source_id, int(match.captures.get("beat", 0))), evidence_of(match))

    def armed(self, sources: Sequence[str], since: datetime, facts: Facts) -> ArmedHeartbeat | None:
        """Return the fastest heartbeat that was printed three times in a row until the silence began; None if there is none.

        Only heartbeats of the version that the source runs count. The last one must not itself have been missed.
        """
        armed: list[ArmedHeartbeat] = []
        for number, heartbeat in enumerate(self._component.heartbeats):
            every = timedelta(seconds=heartbeat.every_s)
            beats: Runs[Evidence] = Runs(self._steady(number))
            for source_id in sources:
                version = facts.bindings.version(source_id, self._component.name, since)
                if (source_id, number) in self.runs and (version is None or within(version, heartbeat.versions)):
                    beats.merge(self.runs[source_id, number])
            until_then = [(first, last) for first, last in beats if last.at <= since]
            for first, last in until_then[-1:]:
                if last.at - first.at >= self._steady(number) and since - last.at <= MISSED * every:
                    armed.append(ArmedHeartbeat(every, last))
        return min(armed, key=lambda beat: beat.every, default=None)

    def runs_of(self, sources: Sequence[str], begin: datetime, end: datetime) -> Iterator[tuple[timedelta, datetime, datetime]]:
        """Yield the interval, the first and the last beat of the steady runs of `sources` from `begin` to `end`, by kind.

        A run that exceeds these times is cut; the cut end is then a beat that its interval makes likely.
        """
        for number, heartbeat in enumerate(self._component.heartbeats):
            every = timedelta(seconds=heartbeat.every_s)
            beats: Runs[Evidence] = Runs(self._steady(number))
            for source_id in sources:
                if (source_id, number) in self.runs:
                    beats.merge(self.runs[source_id, number])
            for first, last in beats:
                newest = first.at + (end - first.at) // every * every if last.at > end else last.at
                oldest = newest - (newest - begin) // every * every if first.at < begin else first.at
                if last.at - first.at >= self._steady(number) and begin <= oldest <= newest <= end:
                    yield every, oldest, newest

    def evidence(self, alerts: Sequence[Alert]) -> Iterator[Evidence]:
        """Yield the heartbeats that prove `alerts`."""
        wanted = {event_id for alert in alerts for event_id in alert.evidence}
        for _, runs in self.runs.items():
            yield from (end for ends in runs for end in dict.fromkeys(ends) if end.event_id in wanted)

    def patience_s(self) -> float:
        """Return how long a member may be silent that has printed nothing yet, in seconds."""
        return MISSED * min((heartbeat.every_s for heartbeat in self._component.heartbeats), default=600.0)

    def _steady(self, number: int) -> timedelta:
        return timedelta(seconds=_STEADY * self._component.heartbeats[number].every_s)
