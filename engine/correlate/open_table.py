"""The openings and the answers of a pair rule, by key."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from engine.codec import loads
from engine.correlate.aggregate import Occurrence, when
from engine.correlate.crowd import Border, Crowd
from engine.correlate.entities import ValuesKey
from engine.correlate.runs import Ends, Runs

MAX_OPEN = 2000  # openings of one key
MAX_ANSWERS = 1000  # runs of answers of one key
MAX_KEYS = 20_000
_INSTANT = timedelta(microseconds=1)


class ClosingMatch(Struct, frozen=True):
    """The time of an answer, and its rule."""

    at: datetime
    event_id: str  # the id of the rule: which event it was does not matter


Answers = Runs[ClosingMatch]


class _OpenSnapshot(Struct, frozen=True):
    opened: list[tuple[ValuesKey, list[Occurrence]]]
    answers: list[tuple[ValuesKey, list[Ends[ClosingMatch]]]]
    touched: list[tuple[ValuesKey, datetime]]
    dropped: int
    border: Border


class OpenTable:
    """Openings and answers by key (a state cell that is always stored whole: it is small, and much of it changes).

    Args:
        within: how long after an opening an answer counts.
    """

    def __init__(self, within: timedelta) -> None:
        self._within = within
        self._opened: dict[ValuesKey, list[Occurrence]] = {}
        self._answers: dict[ValuesKey, Answers] = {}
        self._touched: dict[ValuesKey, datetime] = {}  # the newest tick at which something was added
        self._dropped = 0  # openings beyond MAX_OPEN
        self._crowd: Crowd[ValuesKey] = Crowd(MAX_KEYS)
        self.dirty = False

    def __contains__(self, key: ValuesKey) -> bool:
        return key in self._answers

    def __iter__(self) -> Iterator[ValuesKey]:
        return iter(self._answers)

    def admit(self, key: ValuesKey, tick: datetime | None) -> list[ValuesKey]:
        """Make room for a new key; return the other keys that were removed for it. The key itself may be refused."""
        self.dirty = True
        if not self._crowd.admits(key, tick):
            return []
        self._answers[key] = self._runs()
        removed = self._crowd.take(key, tick)
        for one_key in removed:
            self._remove(one_key)
        return [one_key for one_key in removed if one_key != key]

    def open(self, key: ValuesKey, opening: Occurrence, tick: datetime | None) -> None:
        """Add an opening; one that is there already changes nothing. Beyond MAX_OPEN the oldest is dropped."""
        self._touch(key, tick)
        openings = self._opened.setdefault(key, [])
        if all(opening.event_id != other.event_id for other in openings):
            insort(openings, opening, key=when)
        if len(openings) > MAX_OPEN:
            del openings[0]
            self._dropped += 1

    def answer(self, key: ValuesKey, answer: ClosingMatch, tick: datetime | None) -> None:
        """Add an answer."""
        self._touch(key, tick)
        self._answers[key].add(answer)

    def retract(self, key: ValuesKey, event_id: str) -> bool:
        """Remove the opening of one event; return whether there was one."""
        return self._keep(key, [opening for opening in self._opened.get(key, ()) if opening.event_id != event_id])

    def settle(self, keys: Sequence[ValuesKey]) -> tuple[list[Occurrence], Answers]:
        """Drop the openings of `keys` that an answer of any of them serves; return the other openings and all answers."""
        answers = self._runs()
        for key in keys:
            answers.merge(self._answers[key])
        runs = list(answers)
        for key in keys:
            self._keep(key, [opening for opening in self._opened.get(key, ()) if not self._is_answered(opening.at, runs)])
        return [opening for key in keys for opening in self._opened.get(key, ())], answers

    def idle(self, tick: datetime, idle_for: timedelta) -> list[ValuesKey]:
        """Return the keys that nothing was added to for `idle_for`; without ticks until now, that time begins now."""
        self.dirty = True
        return [key for key in self._answers if tick - self._touched.setdefault(key, tick) >= idle_for]

    def drop(self, key: ValuesKey) -> datetime | None:
        """Drop the openings and answers of a key; return their newest time, None when there were none."""
        opened, answers = self._opened.get(key, []), self._answers[key]
        self._remove(key)
        self._crowd.give(key)
        return max((*(opening.at for opening in opened), *(end.at for _, end in answers)), default=None)

    def rest(self, tick: datetime, idle_for: timedelta) -> None:
        """Admit every key again when none was refused for `idle_for`."""
        self._crowd.rest(tick, idle_for)

    def sentences(self) -> Iterator[str]:
        """Yield sentences about the bounds that are exceeded."""
        if self._dropped:
            yield f"{self._dropped} matches were more than it can keep"
        if self._crowd.beyond:
            yield f"more than {len(self._crowd):,} entities: about {self._crowd.beyond:,} others are not kept and not judged"

    def stored(self) -> object:
        """Return everything."""
        self.dirty = False
        return _OpenSnapshot(
            [(key, openings) for key, openings in self._opened.items() if openings],
            [(key, list(runs)) for key, runs in self._answers.items()],
            list(self._touched.items()),
            self._dropped,
            self._crowd.border,
        )

    def changes(self) -> object | None:
        """Return an empty list when nothing has changed, else None."""
        return None if self.dirty else []

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        snapshot = loads(encoded, _OpenSnapshot)
        self._opened = dict(snapshot.opened)
        self._answers = {key: self._runs(runs) for key, runs in snapshot.answers}
        self._touched, self._dropped = dict(snapshot.touched), snapshot.dropped
        self._crowd = Crowd(MAX_KEYS, None, snapshot.border)
        for key in list(self._answers):
            for removed in self._crowd.take(key, None):
                self._remove(removed)

    def apply(self, encoded: bytes) -> None:
        """Do nothing: there are no changes."""

    def _runs(self, runs: Iterable[Ends[ClosingMatch]] = ()) -> Answers:
        return Runs(self._within + _INSTANT, runs, MAX_ANSWERS)  # answers exactly `within` apart are joined too

    def _touch(self, key: ValuesKey, tick: datetime | None) -> None:
        self.dirty = True
        if tick is not None:
            self._touched[key] = tick

    def _keep(self, key: ValuesKey, openings: list[Occurrence]) -> bool:
        """Replace the openings of a key by some of them; return whether that are fewer."""
        fewer = len(openings) < len(self._opened.get(key, ()))
        if fewer:
            self._opened[key], self.dirty = openings, True
        return fewer

    def _is_answered(self, at: datetime, runs: Sequence[Ends[ClosingMatch]]) -> bool:
        position = bisect_left(runs, at, key=lambda run: run[1].at)
        return position < len(runs) and runs[position][0].at - self._within <= at

    def _remove(self, key: ValuesKey) -> None:
        self._opened.pop(key, None)
        self._answers.pop(key, None)
        self._touched.pop(key, None)
