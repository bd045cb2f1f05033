"""Episodes: when a rule begins to hold for an entity, and when it is over. Pure: entries and clocks in, episodes out.

When it begins is for an Opening to say (engine/correlate/windows.py). An end is judged at the watermark, so that lines of
slower sources are not missed; what comes at the very moment of an end still belongs to the episode.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from engine.correlate.entries import Entry
from engine.model.rules import Clear

Signal = tuple[datetime, str]  # time and rule of a match that says that the trouble is over

QUIET = "quiet, not confirmed"


class Opening(Protocol):
    """Says when a condition begins to hold."""

    @property
    def timespan(self) -> timedelta:
        """Return what lies so far apart that the condition never holds for it together."""

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the first entry of the earliest episode, and the entry with which it begins to hold.

        `entries` are in order of `at`, from `free` on they may be taken.
        """


class Ending(Struct, frozen=True):
    """An end at `at`, known for certain once everything up to `known` has been read."""

    at: datetime
    known: datetime
    why: str


class Episode(Struct, frozen=True):
    """The entries from the first one counted on, `last` the time of the last of its matches; `since`: when the condition began
    to hold.

    `ending` is set when the episode is over; `due` is when it has to be looked at again though nothing more comes.
    """

    entries: tuple[Entry, ...]
    since: datetime
    last: datetime
    ending: Ending | None
    due: datetime | None

    def held_until(self, watermark: datetime | None) -> datetime:
        """Return until when the condition is known to have held."""
        if self.ending is not None:
            return self.ending.at
        return self.last if watermark is None else max(self.last, watermark)


def episodes(
    entries: Sequence[Entry], signals: Sequence[Signal], opening: Opening, clear: Clear, watermark: datetime | None
) -> list[Episode]:
    """Return the episodes of one entity in order of time.

    Args:
        entries: what is counted, in order of `at`.
        signals: matches of the rules of `clear`, in order of time.
    """
    found: list[Episode] = []
    free = 0
    while (opened := opening(entries, free)) is not None:
        episode, free = _run(entries, *opened, signals, clear, watermark)
        found.append(episode)
    return found


def _run(
    entries: Sequence[Entry],
    begin: int,
    opening: int,
    signals: Sequence[Signal],
    clear: Clear,
    watermark: datetime | None,
) -> tuple[Episode, int]:
    """Follow the episode that opens at `opening`; return it and the position after its last entry."""
    last = max(entry.last for entry in entries[begin : opening + 1])
    patience = _patience(signals, clear)
    undecided: datetime | None = None  # when it will be known whether it was over in one of its pauses
    for position in range(opening, len(entries)):
        last = max(last, entries[position].last)
        following = entries[position + 1].first if position + 1 < len(entries) else None
        if following is not None and following <= last + patience:
            continue
        ending = _ending(entries, begin, position, last, signals, clear)
        undisturbed = ending is not None and (following is None or following > ending.known)
        over = undisturbed and ending is not None and watermark is not None and ending.known <= watermark
        if over or following is None:
            members = tuple(entries[begin : position + 1])
            due = undecided or (ending.known if ending else None)
            return Episode(members, entries[opening].at, last, ending if over else None, due), position + 1
        if undisturbed and ending is not None:
            undecided = undecided or ending.known
    raise IndexError(opening)


def _patience(signals: Sequence[Signal], clear: Clear) -> timedelta:
    """Return a time after the last occurrence within which no episode can end: what follows sooner need not be looked at."""
    quiet = clear.in_s if clear.at_most == 0 and clear.in_s > 0 else 0.0
    return timedelta(seconds=min(quiet, clear.quiet_s) if signals else quiet)


def _ending(
    entries: Sequence[Entry], begin: int, position: int, last: datetime, signals: Sequence[Signal], clear: Clear
) -> Ending | None:
    """Return the earliest end that follows if nothing is counted after `position`."""
    ends = [end for end in (_quiet(entries, begin, position, last, clear), _signalled(last, signals, clear)) if end]
    return min(ends, key=lambda end: end.known, default=None)


def _quiet(entries: Sequence[Entry], begin: int, position: int, last: datetime, clear: Clear) -> Ending | None:
    """Return the end by falling to `at_most` in `in_s`: when the entry that makes it one too many has left the window."""
    if clear.in_s <= 0:
        return None
    within = timedelta(seconds=clear.in_s)
    count, at = 0, position
    while at >= begin:
        count += entries[at].weight
        if count > clear.at_most:
            over = max(last, entries[at].last + within)
            return Ending(over, over, QUIET)
        at -= 1
    return Ending(last, last, QUIET)


def _signalled(last: datetime, signals: Sequence[Signal], clear: Clear) -> Ending | None:
    """Return the end by the first signal that is not followed by anything counted, confirmed after `quiet_s` without any."""
    position = bisect_left(signals, (last, ""))
    if position == len(signals):
        return None
    at, rule_id = signals[position]
    return Ending(at, max(at, last + timedelta(seconds=clear.quiet_s)), f"{rule_id} seen")
