"""Expiry: keys that are over and have been idle for long are dropped, and their alerts are final from then on."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from engine.codec import loads

IDLE_FOR = timedelta(hours=24)  # of ticks
_CHECKED_EVERY = timedelta(hours=1)
_INSTANT = timedelta(microseconds=1)


class _ExpirySnapshot(Struct, frozen=True):
    checked: datetime | None = None
    final_before: datetime | None = None


class Expiry:
    """When the keys of a rule were last checked for idleness, and before when its alerts are final (a state cell)."""

    def __init__(self) -> None:
        self.dirty = False
        self._state = _ExpirySnapshot()

    @property
    def final_before(self) -> datetime | None:
        """The time before which alerts change no more, as the matches behind them were dropped; None: nothing was dropped."""
        return self._state.final_before

    def begin(self, tick: datetime | None) -> bool:
        """Return whether keys are to be checked at this tick, and record that they were: once an hour, never without ticks."""
        checked = self._state.checked
        if tick is None or (checked is not None and tick - checked < _CHECKED_EVERY):
            return False
        self._state, self.dirty = _ExpirySnapshot(tick, self.final_before), True
        return True

    def drop(self, newest: datetime | None) -> None:
        """Record that matches were dropped, the last of them of time `newest` (None: there were none)."""
        if newest is not None:
            final_before = max(self.final_before or newest, newest + _INSTANT)
            self._state, self.dirty = _ExpirySnapshot(self._state.checked, final_before), True

    def stored(self) -> object:
        """Return the cell as it is encoded."""
        self.dirty = False
        return self._state

    def changes(self) -> object:
        """Return the cell as it is encoded: it is small."""
        return self.stored()

    def restore(self, encoded: bytes) -> None:
        """Restore the content that `stored` returned."""
        self._state = loads(encoded, _ExpirySnapshot)

    def apply(self, encoded: bytes) -> None:
        """Apply the changes that `changes` returned."""
        self.restore(encoded)
