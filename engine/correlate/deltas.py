"""How logics are stored: as a whole now and then, and in between only what came since; a rule of a storm knows a lot, and every
batch adds a little. The whole and the pieces after it are parts of their own in a mapping of text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, MutableMapping

from msgspec import Struct

from engine.correlate.logic import Logic

SMALL = 4096  # characters; what is not longer is always written as a whole
MOST_PIECES = 50  # they are read one by one

_PIECE = "piece"  # rules have no colon in their ids


class StoredDeltas(Struct, frozen=True):
    """What is stored of a rule: a `digest` of all of it, the characters of the whole and of the `pieces` after it."""

    digest: str
    whole_chars: int
    pieces: int = 0
    piece_chars: int = 0

    @property
    def chars(self) -> int:
        """Return how much it is."""
        return self.whole_chars + self.piece_chars


def write(state: MutableMapping[str, str], logic: Logic, before: StoredDeltas | None) -> StoredDeltas:
    """Write what has changed in `logic` since `before` was returned (None: everything); return what is stored then.

    As a whole it is written once the pieces are as much as that, so that little is written twice and little is read.
    """
    name = logic.rule_id
    if before is not None and before.whole_chars > SMALL and before.pieces < MOST_PIECES:
        piece = logic.changes()
        if piece is not None and before.piece_chars + len(piece) <= before.whole_chars:
            state[_part(name, before.pieces)] = piece
            digest = _digest(before.digest + piece)
            return StoredDeltas(digest, before.whole_chars, before.pieces + 1, before.piece_chars + len(piece))
    whole = state[name] = logic.snapshot()
    for number in range(before.pieces if before is not None else 0):
        del state[_part(name, number)]
    return StoredDeltas(_digest(whole), len(whole))


def forget(state: MutableMapping[str, str], rule_id: str, stored: StoredDeltas) -> None:
    """Remove what is stored of a rule."""
    for name in (rule_id, *(_part(rule_id, number) for number in range(stored.pieces))):
        del state[name]


def read(state: Mapping[str, str], logic: Logic, stored: StoredDeltas) -> None:
    """Let a new `logic` continue from what is stored."""
    name = logic.rule_id
    logic.restore(state[name], *(state[_part(name, number)] for number in range(stored.pieces)))


def _part(rule_id: str, number: int) -> str:
    return f"{_PIECE}:{number}:{rule_id}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
