"""Windows: when a rule over several entries begins to hold. Pure, and the one place that defines a window.

A window is (t - timespan, t]: an entry exactly `timespan` before t is outside, an entry at t is inside. Each answer depends on
the entries alone; another entry can only make a window hold that did not, never the reverse, so nothing waits for slower
sources.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol

from msgspec import Struct

from engine.correlate.aggregate import Occurrence
from engine.correlate.entries import Entry

CountCondition = Callable[[float], bool]


class Window(Protocol):
    """The entries in a sliding window, and their measure."""

    def add(self, entry: Entry) -> None:
        """Add the entry that the window's end has reached."""

    def drop(self, entry: Entry) -> None:
        """Remove the oldest entry."""

    def measure(self) -> float:
        """Return the value of `count` in the condition."""


class Sliding(Struct, frozen=True):
    """An Opening: the first window whose measure makes the condition hold."""

    window: Callable[[], Window]
    holds: CountCondition
    timespan: timedelta

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the positions of the first entry of that window, and of the entry with which the condition began to hold."""
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
    """A window that counts occurrences."""

    def __init__(self) -> None:
        self._count = 0

    def add(self, entry: Entry) -> None:
        """Add the weight of an entry."""
        self._count += entry.weight

    def drop(self, entry: Entry) -> None:
        """Subtract the weight of an entry."""
        self._count -= entry.weight

    def measure(self) -> float:
        """Return the number of occurrences."""
        return self._count


class DistinctValues:
    """A window that counts the distinct values of its entries."""

    def __init__(self) -> None:
        self._entries_of: Counter[str] = Counter()

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self._entries_of[entry.value] += 1

    def drop(self, entry: Entry) -> None:
        """Remove an entry."""
        self._entries_of[entry.value] -= 1
        if not self._entries_of[entry.value]:
            del self._entries_of[entry.value]

    def measure(self) -> float:
        """Return the number of distinct values."""
        return len(self._entries_of)


class Ordered(Struct, frozen=True):
    """An Opening: an occurrence of each of `rules`, in this order, the last less than `timespan` after the first.

    Equal times are in order, for a stamp may be of whole seconds; but one event stands for one rule only.
    """

    rules: tuple[str, ...]
    timespan: timedelta

    def __call__(self, entries: Sequence[Entry], free: int) -> tuple[int, int] | None:
        """Return the positions of the first and the last entry of the sequence that is complete first and tightest."""
        by_rule: dict[str, list[int]] = defaultdict(list)
        for position in range(free, len(entries)):
            by_rule[entries[position].rule_id].append(position)
        for position in by_rule[self.rules[-1]]:
            chain = self._chain_to(position, entries, by_rule)
            if chain is not None and entries[chain[-1]].at > entries[position].at - self.timespan:
                return min(chain), max(chain)
        return None

    def _chain_to(self, position: int, entries: Sequence[Entry], by_rule: dict[str, list[int]]) -> list[int] | None:
        """Return the positions of the tightest sequence that ends at `position`, last first; None if there is none."""
        chain = [position]
        for rule in reversed(self.rules[:-1]):
            positions = by_rule[rule]
            reached = bisect_right(positions, entries[chain[-1]].at, key=lambda position: entries[position].at)
            used = {_identity(entries[in_chain]) for in_chain in chain}
            before = next((p for p in reversed(positions[:reached]) if _identity(entries[p]) not in used), None)
            if before is None:
                return None
            chain.append(before)
        return chain


def _identity(entry: Entry) -> object:
    """Return the identity that entries of the same event share."""
    first = entry.parts[0]
    return first.event_id if isinstance(first, Occurrence) else entry.first
