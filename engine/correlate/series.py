"""Series: the matches of one rule and entity in order of time, bounded without losing the count.

The newest KEPT are kept one by one. Older ones are folded into aggregates over stretches of time on a fixed grid; so what is
folded, and into which stretch, depends on the set of matches alone, not on the order in which they came.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from engine.correlate.aggregate import Aggregate, Occurrence, added, name_of, tally, when

KEPT = 100
STRETCHES = 100
KNOWN = 4096  # names of folded matches, so that one that is read again is not counted again

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_GRID = timedelta(minutes=1)


@dataclass
class Series:
    """Matches of one rule for one entity.

    Attributes:
        distinct: captures whose every tuple of values counts once; empty: every event counts once.
        timed: whether aggregates have cells, which say to the second or so when their matches were.
        recent: the matches that are kept one by one, in order of time.
        folded: the aggregates of the matches before `horizon`, by the number of their stretch.
        width: the width of a stretch in minutes.
        horizon: the time up to which matches are folded; None: none is.
        folded_names: names of folded matches, sorted, at most KNOWN.
        touched: the newest tick at which a match was added.
    """

    distinct: tuple[str, ...] = ()
    timed: bool = False
    recent: list[Occurrence] = field(default_factory=list)
    folded: dict[int, Aggregate] = field(default_factory=dict)
    width: int = 1
    horizon: datetime | None = None
    folded_names: list[str] = field(default_factory=list)
    touched: datetime | None = None

    def __post_init__(self) -> None:
        self._names: dict[str, Occurrence] = {
            self._name(occurrence): occurrence for occurrence in self.recent
        }  # not a field, so it is not stored

    def add(self, occurrence: Occurrence) -> bool:
        """Add a match; return whether it is new. Of two with the same distinct values the earlier one counts."""
        name = self._name(occurrence)
        same = self._names.get(name)
        if same is not None:
            if when(same) <= when(occurrence):
                return False
            self._drop(same)
        self._names[name] = occurrence
        if not self.recent or when(self.recent[-1]) < when(occurrence):
            self.recent.append(occurrence)
        else:
            insort(self.recent, occurrence, key=when)
        if len(self.recent) > 4 * KEPT:
            self.fold()
        return True

    def absorb(self, other: Series) -> None:
        """Add the matches of `other`, which must not be used afterwards."""
        while self.width < other.width:
            self._widen()
        for stretch, summed in other.folded.items():
            self._sum(stretch * other.width // self.width, summed)
        self.horizon = max((at for at in (self.horizon, other.horizon) if at is not None), default=None)
        self.folded_names = sorted({*self.folded_names, *other.folded_names})[:KNOWN]
        for occurrence in other.recent:
            self.add(occurrence)
        self.touched = max((tick for tick in (self.touched, other.touched) if tick is not None), default=None)

    def retract(self, event_id: str) -> bool:
        """Remove the match of one event; return whether it was still kept one by one."""
        occurrence = next((single for single in reversed(self.recent) if single.event_id == event_id), None)
        if occurrence is None:
            return False
        self._drop(occurrence)
        del self._names[self._name(occurrence)]
        return True

    def fold(self) -> None:
        """Fold all but the newest KEPT, whole minutes at a time."""
        self._fold_before_horizon()
        if len(self.recent) <= KEPT:
            return
        reached = self.recent[-KEPT - 1].at
        self.horizon = _EPOCH + ((reached - _EPOCH) // _GRID + 1) * _GRID
        self._fold_before_horizon()
        while len(self.folded) > STRETCHES:
            self._widen()

    def parts(self) -> Iterable[Occurrence | Aggregate]:
        """Fold the older matches; return the aggregates in order of time, then the single matches in order of time."""
        self.fold()
        return (*(self.folded[stretch] for stretch in sorted(self.folded)), *self.recent)

    def _name(self, occurrence: Occurrence) -> str:
        return name_of(occurrence, self.distinct)

    def _drop(self, occurrence: Occurrence) -> None:
        position = bisect_left(self.recent, when(occurrence), key=when)
        while self.recent[position] is not occurrence:
            position += 1
        del self.recent[position]

    def _fold_before_horizon(self) -> None:
        if self.horizon is None or not self.recent or self.recent[0].at >= self.horizon:
            return
        border = bisect_left(self.recent, (self.horizon, ""), key=when)
        by_stretch: dict[int, list[Occurrence]] = {}
        for occurrence in self.recent[:border]:
            name = self._name(occurrence)
            del self._names[name]
            position = bisect_left(self.folded_names, name)
            if self.folded_names[position : position + 1] != [name]:
                self.folded_names.insert(position, name)
                by_stretch.setdefault((occurrence.at - _EPOCH) // (_GRID * self.width), []).append(occurrence)
        del self.recent[:border]
        del self.folded_names[KNOWN:]
        for stretch, occurrences in by_stretch.items():
            self._sum(stretch, tally(occurrences, self.timed))

    def _widen(self) -> None:
        before, self.folded, self.width = self.folded, {}, self.width * 2
        for stretch, summed in before.items():
            self._sum(stretch // 2, summed)

    def _sum(self, stretch: int, summed: Aggregate) -> None:
        before = self.folded.get(stretch)
        self.folded[stretch] = added(before, summed, timed=self.timed) if before is not None else summed
