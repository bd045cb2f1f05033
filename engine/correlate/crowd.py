"""Which of very many names are kept: those with the smallest digests.

So the choice depends on the names alone, not on their order. A name that was left out once is left out for good. How many are
left out is estimated from how close the digests lie (a k-minimum-values sketch).
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Generic, TypeVar

from msgspec import Struct

Member = TypeVar("Member", bound=Hashable)
_DIGESTS = 1 << 62  # what is stored fits 64 bits with a sign


class Border(Struct, frozen=True, array_like=True):
    """Names whose digest is `digest` or more are left out; None: no name is. `touched`: the newest tick at which one was."""

    digest: int | None = None
    touched: datetime | None = None


class Crowd(Generic[Member]):
    """At most `most` names, with at most `most_parts` parts of all of them together (None: any number)."""

    def __init__(self, most: int, most_parts: int | None = None, border: Border = Border()) -> None:  # noqa: B008 - frozen
        self._most, self._most_parts = most, most_parts
        self.border = border
        self._parts: dict[Member, int] = {}
        self._all_parts = 0
        self._largest: list[tuple[int, str, Member]] = []  # a heap by negated digest; names that have left are skipped

    def admits(self, name: Member, tick: datetime | None) -> bool:
        """Return whether `name` may be kept by the present border."""
        if self.border.digest is None or name in self._parts or _digest(name) < self.border.digest:
            return True
        self._touch(tick)
        return False

    def take(self, name: Member, tick: datetime | None) -> list[Member]:
        """Add a part of `name`, which is admitted; return the names that have to leave for it, perhaps itself."""
        if name not in self._parts:
            heappush(self._largest, (-_digest(name), repr(name), name))
        self._parts[name] = self._parts.get(name, 0) + 1
        self._all_parts += 1
        leaving: list[Member] = []
        while len(self._parts) > self._most or (self._most_parts is not None and self._all_parts > self._most_parts):
            negated, _, largest = heappop(self._largest)
            if largest in self._parts:
                self.border = Border(-negated, self.border.touched)
                self._touch(tick)
                self._remove(largest)
                leaving.append(largest)
        return leaving

    def give(self, name: Member) -> None:
        """Remove a part of `name`. Raises KeyError when it has none."""
        if self._parts[name] == 1:
            self._remove(name)
        else:
            self._parts[name] -= 1
            self._all_parts -= 1

    def rest(self, tick: datetime, within: timedelta) -> None:
        """Admit every name again when none was left out for `within`."""
        if self.border.digest is not None and tick - (self.border.touched or tick) >= within:
            self.border = Border()

    @property
    def beyond(self) -> int:
        """About how many names are left out, rounded to two digits."""
        if self.border.digest is None:
            return 0
        share = max(self.border.digest, 1) / _DIGESTS  # of all names, those that are kept
        left_out = max(1, round(len(self._parts) / share) - len(self._parts))
        return round(left_out, min(0, 2 - len(str(left_out))))

    def __len__(self) -> int:
        return len(self._parts)

    def _remove(self, name: Member) -> None:
        self._all_parts -= self._parts.pop(name)
        if len(self._largest) > 2 * len(self._parts) + 100:
            self._largest = sorted(entry for entry in self._largest if entry[2] in self._parts)

    def _touch(self, tick: datetime | None) -> None:
        if tick is not None and (self.border.touched is None or tick > self.border.touched):
            self.border = Border(self.border.digest, tick)


def _digest(name: Hashable) -> int:
    return int.from_bytes(blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 2
