"""Windows: when a rule over several entries begins to hold. Pure, and the one place that says what a window is.

A window is (t - timespan, t]: what lies exactly `timespan` back is out, what happens at t is in. Each answer depends on the
entries alone; another entry can only make a window hold that did not, never the reverse, so nothing waits for slower sources.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from engine.correlate.aggregate import Occurrence
from engine.correlate.entries import Entry, Part

CountCondition = Callable[[float], bool]


class Window(Protocol):
    """What lies in a window that slides over entries."""

    def add(self, entry: Entry) -> None:
        """Take the entry that the window's end has reached."""

    def drop(self, entry: Entry) -> None:
        """Leave out the oldest entry."""

    def measure(self) -> float:
        """Return what the condition sees as `count`."""


class Sliding(Struct, frozen=True):
    """An Opening: the first window whose measure makes the condition hold."""

    window: Callable[[], Window]
    holds: CountCondition
    timespan: timedelta

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the first entry of that window, and the entry with which the condition began to hold."""
        window, begin = self.window(), free
        for position in range(free, len(entries)):
            window.add(entries[position])
            while entries[begin].at <= entries[position].at - self.timespan:
                window.drop(entries[begin])
                begin += 1
            if self.holds(window.measure()):
                return begin, position
        return None


class Occurrences:
    """How many there are."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        self._count += entry.weight

    def drop(self, entry: Entry) -> None:
        """Count it no longer."""
        self._count -= entry.weight

    def measure(self) -> float:
        """Return the count."""
        return self._count


class DistinctKinds:
    """How many different kinds there are, told apart by `kind`: the rules seen, or the values captured."""

    def __init__(self, kind: Callable[[Entry], str]) -> None:
        self._kind = kind
        self._seen: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        """Take an entry."""
        self._seen[self._kind(entry)] += 1

    def drop(self, entry: Entry) -> None:
        """Leave it out."""
        kind = self._kind(entry)
        self._seen[kind] -= 1
        if not self._seen[kind]:
            del self._seen[kind]

    def measure(self) -> float:
        """Return how many kinds are in."""
        return len(self._seen)


class Rise:
    """By how much the number captured as `field` lies above its lowest value before it in the window."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._newest = 0.0
        self._lowest: deque[tuple[Entry, float]] = deque()  # rising: each is the lowest from itself on

    def add(self, entry: Entry) -> None:
        """Take an entry; one of a sum tells something only where the first or the last of its numbers stands."""
        numbers = [number for part in entry.parts for at, number in _ends(part, self._field) if entry.first <= at <= entry.last]
        if not numbers:
            return
        low, self._newest = min(numbers), numbers[-1]
        while self._lowest and self._lowest[-1][1] >= low:
            self._lowest.pop()
        self._lowest.append((entry, low))

    def drop(self, entry: Entry) -> None:
        """Leave the oldest entry out."""
        if self._lowest and self._lowest[0][0] is entry:
            self._lowest.popleft()

    def measure(self) -> float:
        """Return the rise."""
        return self._newest - self._lowest[0][1] if self._lowest else 0.0


class Ordered(Struct, frozen=True):
    """An Opening: an occurrence of each of `rules`, in this order, the last less than `timespan` after the first.

    Equal times are in order, for a stamp may be of whole seconds; but one event stands for one rule only.
    """

    rules: tuple[str, ...]
    timespan: timedelta

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the first and the last entry of the sequence that is complete first, the tightest of those."""
        by_rule: dict[str, list[int]] = defaultdict(list)
        for position in range(free, len(entries)):
            by_rule[entries[position].rule_id].append(position)
        for position in by_rule[self.rules[-1]]:
            chain = self._back_from(position, entries, by_rule)
            if chain is not None and entries[chain[-1]].at > entries[position].at - self.timespan:
                return min(chain), max(chain)
        return None

    def _back_from(self, position: int, entries: Sequence[Entry], by_rule: dict[str, list[int]]) -> list[int] | None:
        """Return the positions of the tightest sequence that ends at `position`, last first."""
        chain = [position]
        for rule in reversed(self.rules[:-1]):
            places = by_rule[rule]
            reached = bisect_right(places, entries[chain[-1]].at, key=lambda place: entries[place].at)
            used = {_name(entries[each]) for each in chain}
            found = next((place for place in reversed(places[:reached]) if _name(entries[place]) not in used), None)
            if found is None:
                return None
            chain.append(found)
        return chain


def _name(entry: Entry) -> object:
    """Return what two entries have in common that are made of one event."""
    first = entry.parts[0]
    return first.event_id if isinstance(first, Occurrence) else entry.first


def _ends(part: Part, field: str) -> Iterator[tuple[datetime, float]]:
    """Yield the first and the last number, and when; what a sum held between them is not looked at: it may have begun anew."""
    if isinstance(part, Occurrence):
        yield part.at, float(part.captures[field])
    else:
        yield from (end for end in (part.captures[field].first, part.captures[field].last) if end is not None)
