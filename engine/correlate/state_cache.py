"""The states that a process keeps between two batches, so that they need not be read from the store again."""

from __future__ import annotations

from engine.correlate.deltas import StoredDeltas
from engine.correlate.keyed_state import KeyedState

MOST_CHARS = 1 << 24  # of stored text, all states together; as objects they take a multiple of it


class StateCache:
    """States that no batch uses now, by scope and rule; beyond `most_chars` the oldest are dropped."""

    def __init__(self, most_chars: int = MOST_CHARS) -> None:
        self._most, self._chars = most_chars, 0
        self._entries: dict[tuple[str, str], tuple[StoredDeltas, KeyedState]] = {}

    def put(self, scope: str, state: KeyedState, stored: StoredDeltas) -> None:
        """Add a state that is stored as `stored`; it must not be used until it is taken."""
        self._pop((scope, state.rule_id))
        self._entries[scope, state.rule_id] = stored, state
        self._chars += stored.chars
        while self._chars > self._most:
            self._pop(next(iter(self._entries)))

    def take(self, scope: str, rule_id: str, stored: StoredDeltas) -> KeyedState | None:
        """Remove the state of a rule and return it if it was put as `stored`; else None, as when a batch is processed again."""
        at_put, state = self._pop((scope, rule_id))
        return state if at_put == stored else None

    def _pop(self, key: tuple[str, str]) -> tuple[StoredDeltas | None, KeyedState | None]:
        stored, state = self._entries.pop(key, (None, None))
        self._chars -= stored.chars if stored is not None else 0
        return stored, state
