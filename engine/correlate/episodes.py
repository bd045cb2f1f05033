"""Episodes: from when to when a rule holds for an entity. Pure: entries and a watermark in, episodes out.

An Opening decides when it begins (engine/correlate/windows.py). The end is decided at the watermark, so that lines of slower
sources are not missed; a match at the very moment of the end still belongs to the episode.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.correlate.asked import ASKED_ANEW, NO_WORDS, ClusterWords, contradicted_text, unbelieved_text, verified_text
from engine.correlate.entries import Entry
from engine.model.incidents import QUIET, VERIFIED
from engine.model.rules import Clear
from engine.model.words import worded

Signal = tuple[datetime, str]  # time and rule of a match that ends an episode


class Opening(Protocol):
    """Decides when a condition begins to hold."""

    @property
    def timespan(self) -> timedelta:
        """The time within which entries can make the condition hold together."""

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the positions of the first entry of the earliest episode, and of the entry with which it begins to hold.

        Args:
            entries: in order of `at`.
            free: the first position that is not part of an earlier episode.
        """


class Ending(Struct, frozen=True, gc=False):
    """An end at `at`, which is final once the watermark has reached `certain`."""

    at: datetime
    certain: datetime
    why: str


class Episode(Struct, frozen=True, gc=False):
    """A time for which a rule holds for an entity.

    Attributes:
        entries: the counted entries in it, in order of time.
        since: when the condition began to hold.
        last: the time of its last match.
        ending: its end; None while it is not over.
        due: the watermark at which it must be evaluated again although no match came; None: never.
        doubt: why it is not over although something says so; empty if nothing does.
    """

    entries: tuple[Entry, ...]
    since: datetime
    last: datetime
    ending: Ending | None
    due: datetime | None
    doubt: str = ""

    def held_until(self, watermark: datetime | None) -> datetime:
        """Return until when the condition has held, as far as the watermark shows."""
        if self.ending is not None:
            return self.ending.at
        return self.last if watermark is None else max(self.last, watermark)


def episodes(
    entries: Sequence[Entry],
    signals: Sequence[Signal],
    opening: Opening,
    clear: Clear,
    watermark: datetime | None,
    words: ClusterWords = NO_WORDS,
) -> list[Episode]:
    """Return the episodes of one entity in order of time.

    Args:
        entries: the counted entries, in order of `at`.
        signals: matches of the rules of `clear`, in order of time.
        words: what the cluster says.
    """
    in_order: list[Episode] = []
    free = 0
    while (opened := opening(entries, free)) is not None:
        episode, free = _run(entries, *opened, signals, clear, watermark, words)
        doubted = episode.ending is None and not episode.doubt
        doubt = _unbelieved(episode, in_order[-1] if in_order else None, words) if doubted else ""
        in_order.append(replace(episode, doubt=doubt) if doubt else episode)
    return in_order


def _run(
    entries: Sequence[Entry],
    begin: int,
    opening: int,
    signals: Sequence[Signal],
    clear: Clear,
    watermark: datetime | None,
    words: ClusterWords,
) -> tuple[Episode, int]:
    """Return the episode that opens at `opening`, and the position after its last entry."""
    last = max(entry.last for entry in entries[begin : opening + 1])
    patience = _patience(signals, clear)
    undecided: datetime | None = None  # the watermark that decides whether it was over in one of its pauses
    for position in range(opening, len(entries)):
        last = max(last, entries[position].last)
        following = entries[position + 1].first if position + 1 < len(entries) else None
        if following is not None and following <= last + patience:
            continue
        ending, doubt = _believed(_ending(entries, begin, position, last, signals, clear), words, following, watermark)
        undisturbed = ending is not None and (following is None or following > ending.certain)
        over = undisturbed and ending is not None and watermark is not None and ending.certain <= watermark
        if over or following is None:
            members = tuple(entries[begin : position + 1])
            due = undecided or (ending.certain if ending else None)
            return Episode(
                members, entries[opening].at, last, ending if over else None, due, "" if over else doubt
            ), position + 1
        if undisturbed and ending is not None:
            undecided = undecided or ending.certain
    raise IndexError(opening)


def _patience(signals: Sequence[Signal], clear: Clear) -> timedelta:
    """Return a time after the last occurrence within which no episode can end; entries that follow sooner need no check."""
    quiet = clear.in_s if clear.at_most == 0 and clear.in_s > 0 else 0.0
    return timedelta(seconds=min(quiet, clear.quiet_s) if signals else quiet)


def _ending(
    entries: Sequence[Entry], begin: int, position: int, last: datetime, signals: Sequence[Signal], clear: Clear
) -> Ending | None:
    """Return the earliest end if no entry follows after `position`; None when there is none yet."""
    ends = [end for end in (_quiet(entries, begin, position, last, clear), _signalled(last, signals, clear)) if end]
    return min(ends, key=lambda end: end.certain, default=None)


def _believed(
    ending: Ending | None, words: ClusterWords, following: datetime | None, watermark: datetime | None
) -> tuple[Ending | None, str]:
    """Return an end as the cluster bears it out: verified, or put off for as long as the cluster contradicts it; and why it is
    doubted now, empty if it is not."""
    if ending is None:
        return None, ""
    if (against := words.against(ending.certain)) is None:
        at = words.verified_at(ending.at, following)
        return (ending if at is None else replace(ending, why=_verified(ending, at))), ""
    is_due = watermark is not None and ending.certain <= watermark
    doubt = contradicted_text(ending.why, ending.at, against) if is_due else ""
    if against.is_verified:
        return Ending(against.end, against.end, verified_text(against.end)), doubt
    if against.is_withdrawn:
        return replace(ending, certain=against.end), doubt
    unasked = worded("the cluster has not been asked since")
    return replace(ending, certain=against.end, why=worded("{why}; {further}", why=ending.why, further=unasked)), doubt


def _verified(ending: Ending, at: datetime) -> str:
    verified = verified_text(at)
    return verified if at == ending.at else worded("{why}; {further}", why=ending.why, further=verified)


def _unbelieved(episode: Episode, before: Episode | None, words: ClusterWords) -> str:
    """Return why an episode goes on although the cluster said within it, or at the end of the one before, that it is over;
    empty if it did not."""
    begin = episode.entries[0].first
    if before is not None and before.ending is not None and VERIFIED in before.ending.why and begin <= before.last + ASKED_ANEW:
        begin = before.last
    at = next((at for at in reversed(words.verified) if begin < at < episode.last), None)
    return unbelieved_text(at) if at is not None and words.against(episode.last) is None else ""


def _quiet(entries: Sequence[Entry], begin: int, position: int, last: datetime, clear: Clear) -> Ending | None:
    """Return the end by `at_most` in `in_s`: when the entry that is one too many has left the window."""
    if clear.lasts:
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
    """Return the end by the first signal after the last entry, confirmed after `quiet_s` without an entry."""
    position = bisect_left(signals, (last, ""))
    if position == len(signals):
        return None
    at, rule_id = signals[position]
    return Ending(at, max(at, last + timedelta(seconds=clear.quiet_s)), worded("{rule} seen", rule=rule_id))
