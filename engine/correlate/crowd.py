"""Which of many names are kept apart: those with the smallest digests, so that it depends on the names alone and not on the
order in which they come. One that was left out once is left out for good; how many are is told by how close the digests lie.
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
    """Names with a digest of `digest` or more are left out; None: none is. `touched`: the newest tick at which one was."""

    digest: int | None = None
    touched: datetime | None = None


class Crowd(Generic[Member]):
    """Names, each with how much is kept of it: at most `most` names, and `most_parts` parts of all of them together."""

    def __init__(self, most: int, most_parts: int | None = None, border: Border = Border()) -> None:  # noqa: B008 - frozen
        self._most, self._most_parts = most, most_parts
        self.border = border
        self._parts: dict[Member, int] = {}
        self._all_parts = 0
        self._largest: list[tuple[int, str, Member]] = []  # a heap by negated digest; names that have left are passed over

    def admits(self, name: Member, tick: datetime | None) -> bool:
        """Return whether `name` is kept apart, as far as is known by now."""
        if self.border.digest is None or name in self._parts or _digest(name) < self.border.digest:
            return True
        self._touch(tick)
        return False

    def take(self, name: Member, tick: datetime | None) -> list[Member]:
        """Take a part of `name`, which is admitted; return the names that have to leave for it, perhaps itself."""
        if name not in self._parts:
            heappush(self._largest, (-_digest(name), repr(name), name))
        self._parts[name] = self._parts.get(name, 0) + 1
        self._all_parts += 1
        left: list[Member] = []
        while len(self._parts) > self._most or (self._most_parts is not None and self._all_parts > self._most_parts):
            negated, _, largest = heappop(self._largest)
            if largest in self._parts:
                self.border = Border(-negated, self.border.touched)
                self._touch(tick)
                self._forget(largest)
                left.append(largest)
        return left

    def give(self, name: Member) -> None:
        """Give back a part of `name`, which is kept."""
        if self._parts[name] == 1:
            self._forget(name)
        else:
            self._parts[name] -= 1
            self._all_parts -= 1

    def rest(self, tick: datetime, within: timedelta) -> None:
        """Keep every name apart again when none was left out for so long."""
        if self.border.digest is not None and tick - (self.border.touched or tick) >= within:
            self.border = Border()

    @property
    def beyond(self) -> int:
        """About how many names are left out: two digits of it are good."""
        if self.border.digest is None:
            return 0
        share = max(self.border.digest, 1) / _DIGESTS  # of all names, those that are kept
        left_out = max(1, round(len(self._parts) / share) - len(self._parts))
        return round(left_out, min(0, 2 - len(str(left_out))))

    def __len__(self) -> int:
        return len(self._parts)

    def _forget(self, name: Member) -> None:
        self._all_parts -= self._parts.pop(name)
        if len(self._largest) > 2 * len(self._parts) + 100:
            self._largest = sorted(each for each in self._largest if each[2] in self._parts)

    def _touch(self, tick: datetime | None) -> None:
        if tick is not None and (self.border.touched is None or tick > self.border.touched):
            self.border = Border(self.border.digest, tick)


def _digest(name: Hashable) -> int:
    return int.from_bytes(blake2b(repr(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()) >> 2
