"""The gate: the signs of a whole plan searched for at once in the text of an event, whatever their number.

It may let through what bears nothing, and holds back nothing that bears something.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache

import re2

from engine.match.checks import EXPRESSION_MEMORY
from engine.match.signs import Signs


class Gate:
    """Tells which of several things an event's text may bear, by one RE2 set of all their signs."""

    __slots__ = ("_always", "_bearers", "_regexes", "_set")

    def __init__(self, signs: Sequence[Signs]) -> None:
        """Number the things as their signs stand in `signs`."""
        self._always = frozenset(number for number, each in enumerate(signs) if not each.regexes)
        bearers: dict[str, list[int]] = {}
        for number, each in enumerate(signs):
            for regex in each.regexes:
                bearers.setdefault(regex, []).append(number)
        self._bearers, self._regexes = bearers, tuple(bearers)
        self._set = _set_of(self._regexes) if bearers else None

    def signs_in(self, text: bytes) -> frozenset[str]:
        """Return the signs that match in `text` (UTF-8)."""
        found = self._set.Match(text) if self._set is not None else None
        return frozenset(self._regexes[at] for at in found) if found else frozenset()

    def possible(self, signs: Set[str]) -> frozenset[int]:
        """Return the numbers of what a text with these `signs` may bear."""
        return self._always.union(*(self._bearers[sign] for sign in signs)) if signs else self._always


@lru_cache(maxsize=2)
def _set_of(regexes: tuple[str, ...]) -> re2.Set:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = EXPRESSION_MEMORY
    made = re2.Set.SearchSet(options)
    for regex in regexes:
        made.Add(regex)
    made.Compile()
    return made
