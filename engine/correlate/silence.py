"""Silence: whether a pause of a member is a failure. Pure: the pause and its circumstances in, a verdict out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.correlate.spans import Gap, Spans
from engine.model.rules import Absence, Sooner
from engine.model.words import worded

WITNESSES = 2  # other members that must go on
CRITICAL_AFTER = timedelta(minutes=3)

PLANNED = worded("planned stop, not back")
ENDED = worded("no line since; or its log was collected earlier")
COMPLAINED = worded("others cannot reach it")


class Pause(Struct, frozen=True):
    """A pause of a member, and the circumstances.

    Attributes:
        gap: the pause.
        timespan: how long the member may be silent; None when no heartbeat armed it.
        complaints: when others complained of the member, sorted.
        taken_back: when a complaint was withdrawn, sorted.
        stops: when the member was stopped on purpose, sorted.
        others: when each other member was active.
        peer_time: the time that the other members agree has come.
        read: whether the sources of the member have been read to their ends.
        border: whether its log ends where a file was rotated away.
        firing: whether an alert on this pause is open.
    """

    gap: Gap
    timespan: timedelta | None
    complaints: Sequence[datetime]
    taken_back: Sequence[datetime]
    stops: Sequence[datetime]
    others: Sequence[Spans]
    peer_time: datetime | None
    read: bool
    border: bool
    firing: bool = False


class SilenceVerdict(Struct, frozen=True):
    """A pause that is a failure, up to `until` (None: it lasts) and certain at `certain`; `complained`: the first complaint."""

    certain: datetime
    until: datetime | None
    severity: str
    why: str
    complained: datetime | None = None


def judge(pause: Pause, absence: Absence, severity: str) -> SilenceVerdict | None:
    """Return the verdict on a pause; None while it is no failure.

    While a source has not been read to its end, a pause that lasts opens no alert, and closes none.
    """
    if pause.gap.until is None and not (pause.read or pause.firing):
        return None
    stop = absence.stop
    planned = stop is not None and _near(pause.stops, pause.gap.since, timedelta(seconds=stop.within_s))
    if absence.after is not None:
        return _outlasted(pause, pause.timespan, severity, PLANNED) if planned and pause.timespan else None
    if planned:
        return None
    complained = _complained(pause, absence.sooner) if absence.sooner is not None else None
    outlasted = None if pause.timespan is None else _outlasted(pause, pause.timespan, severity, ENDED)
    if outlasted is None or complained is None:
        return outlasted or complained
    return SilenceVerdict(
        min(outlasted.certain, complained.certain), outlasted.until, severity, COMPLAINED, complained.complained
    )


def _outlasted(pause: Pause, timespan: timedelta, severity: str, why: str) -> SilenceVerdict | None:
    """Return the verdict on a pause that lasted for `timespan` while at least two other members were active.

    They must be active before the deadline and again within another `timespan` after it: a time for which no logs at all were
    collected is no silence.
    """
    gap, deadline = pause.gap, pause.gap.since + timespan
    if pause.border or (gap.until is not None and gap.until < deadline):
        return None
    later = deadline + timespan
    witnesses = [s for s in pause.others if s.active_between(gap.since, deadline) and s.active_between(deadline, later)]
    return SilenceVerdict(deadline, gap.until, severity, why) if len(witnesses) >= WITNESSES else None


def _complained(pause: Pause, sooner: Sooner) -> SilenceVerdict | None:
    """Return the verdict by the first complaint within the pause that was not withdrawn in time; None without one."""
    gap, patience = pause.gap, timedelta(seconds=sooner.timespan_s)
    for complaint in pause.complaints[bisect_left(pause.complaints, gap.since) :]:
        if gap.until is not None and complaint >= gap.until:
            return None
        certain, back = complaint + patience, _first_from(pause.taken_back, complaint)
        if back is not None and back <= certain:
            continue
        silent_until = gap.until or _reached(pause)
        if silent_until < certain:
            return None
        until = min((end for end in (gap.until, back) if end is not None), default=None)
        grave = (until or silent_until) >= complaint + CRITICAL_AFTER
        return SilenceVerdict(certain, until, "critical" if grave else "high", COMPLAINED, complaint)
    return None


def _reached(pause: Pause) -> datetime:
    """Return the time up to which a silence is known to last: the time of the peers, or the last complaint if that is later.

    An idle cluster prints nothing, so most peers may be quiet while others still complain. A complaint counts only up to the
    newest time of any peer: clients may print another time zone.
    """
    newest = max((spans.last for spans in pause.others), default=pause.gap.since)
    complained = min(newest, pause.complaints[-1])
    return complained if pause.peer_time is None else max(complained, pause.peer_time)


def _first_from(times: Sequence[datetime], at: datetime) -> datetime | None:
    position = bisect_left(times, at)
    return times[position] if position < len(times) else None


def _near(times: Sequence[datetime], at: datetime, within: timedelta) -> bool:
    following = _first_from(times, at - within)
    return following is not None and following <= at + within
