"""Storage of states: a full copy now and then, and in between deltas, which contain only the changes.

In a storm the state of a rule is large, and every batch adds a little. The full copy and the deltas after it are separate
entries in a mapping of text to text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping

from msgspec import Struct

from engine.correlate.keyed_state import KeyedState

SMALL = 4096  # characters; a state that is not longer is always stored whole
MOST_DELTAS = 50  # they are read one by one

_PREFIX = "delta"  # rule ids contain no colon


class StoredDeltas(Struct, frozen=True):
    """The stored entries of a rule.

    Attributes:
        digest: a digest of all entries.
        whole_chars: the characters of the full copy.
        deltas: how many deltas are stored after the full copy.
        delta_chars: their characters.
    """

    digest: str
    whole_chars: int
    deltas: int = 0
    delta_chars: int = 0

    @property
    def chars(self) -> int:
        """The characters of the whole and the deltas."""
        return self.whole_chars + self.delta_chars


def write(stored: MutableMapping[str, str], state: KeyedState, before: StoredDeltas | None) -> StoredDeltas:
    """Store the changes of `state` since `before` was returned (None: nothing is stored); return the stored entries.

    A full copy is stored again once the deltas are as long as the last one, so that little is written twice.
    """
    rule_id = state.rule_id
    if before is not None and before.whole_chars > SMALL and before.deltas < MOST_DELTAS:
        delta = state.encode_changes()
        if delta is not None and before.delta_chars + len(delta) <= before.whole_chars:
            stored[_delta_key(rule_id, before.deltas)] = delta
            digest = _digest(before.digest + delta)
            return StoredDeltas(digest, before.whole_chars, before.deltas + 1, before.delta_chars + len(delta))
    whole = stored[rule_id] = state.encode()
    for number in range(before.deltas if before is not None else 0):
        del stored[_delta_key(rule_id, number)]
    return StoredDeltas(_digest(whole), len(whole))


def remove(stored: MutableMapping[str, str], rule_id: str, of_rule: StoredDeltas) -> None:
    """Remove the stored entries of a rule."""
    for key in (rule_id, *(_delta_key(rule_id, number) for number in range(of_rule.deltas))):
        del stored[key]


def read(stored: Mapping[str, str], state: KeyedState, of_rule: StoredDeltas) -> None:
    """Restore a new `state` from the stored entries of its rule."""
    rule_id = state.rule_id
    state.restore(stored[rule_id], *(stored[_delta_key(rule_id, number)] for number in range(of_rule.deltas)))


def _delta_key(rule_id: str, number: int) -> str:
    return f"{_PREFIX}:{number}:{rule_id}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
