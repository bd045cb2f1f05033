"""What stays in a process between two batches: logics whose state need not be read, as it is just as they left it."""

from __future__ import annotations

from engine.correlate.deltas import StoredDeltas
from engine.correlate.logic import Logic

MOST_CHARS = 1 << 24  # of stored state, all logics together; as objects they take some times as much


class StateCache:
    """Logics that nobody uses now, by scope and rule. Those that have rested longest are dropped when they are too much."""

    def __init__(self, most_chars: int = MOST_CHARS) -> None:
        self._most, self._chars = most_chars, 0
        self._left: dict[tuple[str, str], tuple[StoredDeltas, Logic]] = {}

    def leave(self, scope: str, logic: Logic, stored: StoredDeltas) -> None:
        """Let a logic rest whose state is `stored`: it is not to be used any more but by who takes it."""
        self._drop((scope, logic.rule_id))
        self._left[scope, logic.rule_id] = stored, logic
        self._chars += stored.chars
        while self._chars > self._most:
            self._drop(next(iter(self._left)))

    def take(self, scope: str, rule_id: str, stored: StoredDeltas) -> Logic | None:
        """Return the logic of a rule if this is the state that it left, as it is not when a batch is done again; either way it
        rests no more."""
        left, logic = self._drop((scope, rule_id))
        return logic if left == stored else None

    def _drop(self, place: tuple[str, str]) -> tuple[StoredDeltas | None, Logic | None]:
        left, logic = self._left.pop(place, (None, None))
        self._chars -= left.chars if left is not None else 0
        return left, logic
