"""Runs and moments by key, as state cells."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from engine.codec import loads
from engine.correlate.aggregate import EventTime
from engine.correlate.moments import Moments
from engine.correlate.runs import Ends, Runs, TimedEvent

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item", bound=TimedEvent)
Content = TypeVar("Content")


class RunsTable(Generic[Key, Item]):
    """One set of runs for each key (a state cell); its changes are the keys that were added to, with all their runs.

    Args:
        encoding: the type of the pairs of key and runs, for reading them back.
        gap: returns how close events of a key must be to be one run.
    """

    def __init__(self, encoding: type[list[tuple[Key, list[Ends[Item]]]]], gap: Callable[[Key], timedelta]) -> None:
        self._encoding, self._gap = encoding, gap
        self._runs: dict[Key, Runs[Item]] = {}
        self._changed: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        return key in self._runs

    def __getitem__(self, key: Key) -> Runs[Item]:
        return self._runs[key]

    def items(self) -> Iterator[tuple[Key, Runs[Item]]]:
        """Yield every key with its runs."""
        yield from self._runs.items()

    @property
    def dirty(self) -> bool:
        """Whether anything was added since it was stored."""
        return bool(self._changed)

    def add(self, key: Key, item: Item) -> None:
        """Add an event."""
        self._runs.setdefault(key, Runs(self._gap(key))).add(item)
        self._changed.add(key)

    def stored(self) -> object:
        """Return every key with its runs."""
        self._changed = set()
        return [(key, list(runs)) for key, runs in self._runs.items()]

    def changes(self) -> object:
        """Return the keys that were added to, sorted, with their runs."""
        changed, self._changed = sorted(self._changed, key=repr), set()
        return [(key, list(self._runs[key])) for key in changed]

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self.apply(encoded)

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        self._runs.update((key, Runs(self._gap(key), runs)) for key, runs in loads(encoded, self._encoding))


class MomentsTable(Generic[Key]):
    """One set of moments for each key (a state cell); its changes are the moments that were added.

    Args:
        encoding: the type of the pairs of key and moments, for reading them back.
    """

    def __init__(self, encoding: type[list[tuple[Key, list[EventTime]]]]) -> None:
        self._encoding = encoding
        self._moments: dict[Key, Moments] = {}
        self._is_logged = False  # whether the table is stored at all: else what was added need not be recorded
        self._added: dict[Key, list[EventTime]] = {}
        self.dirty = False

    def items(self) -> Iterator[tuple[Key, Moments]]:
        """Yield every key with its moments."""
        yield from self._moments.items()

    def add(self, key: Key, at: datetime, event_id: str) -> None:
        """Add the time of an event."""
        self._moments.setdefault(key, Moments()).add(at, event_id)
        self.dirty = True
        if self._is_logged:
            self._added.setdefault(key, []).append((at, event_id))

    def stored(self) -> object:
        """Return every key with its moments."""
        self._reset_log()
        return [(key, moments.stamps()) for key, moments in self._moments.items()]

    def changes(self) -> object:
        """Return the moments that were added, by key, in the order in which they came."""
        added = list(self._added.items())
        self._reset_log()
        return added

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self.apply(encoded)

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        for key, stamps in loads(encoded, self._encoding):
            for at, event_id in stamps:
                self.add(key, at, event_id)
        self._reset_log()

    def _reset_log(self) -> None:
        self.dirty, self._is_logged, self._added = False, True, {}


class ValueCell(Generic[Content]):
    """A small value that is always stored whole (a state cell, never dirty by itself).

    Args:
        encoding: its type, for reading it back.
    """

    dirty = False

    def __init__(self, value: Content, encoding: type[Content]) -> None:
        self.value, self._encoding = value, encoding

    def stored(self) -> object:
        """Return the value."""
        return self.value

    def changes(self) -> object:
        """Return the value."""
        return self.value

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self.value = loads(encoded, self._encoding)

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        self.restore(encoded)
