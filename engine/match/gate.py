"""Searching for the signs of a whole plan at once: the gate in the text of an event, the screen in raw bytes.

Both may let through what bears nothing; neither holds back what bears something. Most log lines stop here, at a cost that
hardly grows with the number of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

import re2

from engine.match.checks import EXPRESSION_MEMORY, expression
from engine.match.signs import Signs


class Gate:
    """Tells which of several things an event's text may bear, by one RE2 set of all their signs."""

    __slots__ = ("_always", "_bearers", "_set")

    def __init__(self, signs: Sequence[Signs]) -> None:
        """Number the things as their signs stand in `signs`."""
        self._always = frozenset(number for number, each in enumerate(signs) if not each.regexes)
        bearers: dict[str, list[int]] = {}
        for number, each in enumerate(signs):
            for regex in each.regexes:
                bearers.setdefault(regex, []).append(number)
        self._bearers = tuple(map(tuple, bearers.values()))
        self._set = _set_of(bearers) if bearers else None

    def possible(self, text: bytes) -> frozenset[int]:
        """Return the numbers of what `text` (UTF-8) may bear."""
        found = self._set.Match(text) if self._set is not None else ()
        return self._always.union(*(self._bearers[at] for at in found)) if found else self._always


@dataclass(frozen=True, slots=True)
class Hit:
    """A sign ends before position `end`. `said` is what it matched, where only that counts, not how often; empty elsewhere."""

    end: int
    said: bytes = b""


Find = Callable[[bytes], list[Hit]]


class Screen:
    """Looks for signs in raw bytes, for one thread at a time.

    Args:
        counted: the signs of what counts each time it is said.
        named: the signs of what is known once it was said a few times in the same words.
        database: use Hyperscan where it is installed.

    `complete` tells whether every sign is known; if not, hits mean nothing.
    """

    def __init__(self, counted: Iterable[Signs], named: Iterable[Signs] = (), database: bool = True) -> None:
        some, others = list(named), list(counted)
        given = [*others, *some]
        self.complete = all(each.regexes and "".join(each.regexes).isascii() for each in given)
        regexes = list(dict.fromkeys(regex for each in given for regex in each.regexes))
        alike = {regex for each in some if each.whole for regex in each.regexes}
        alike -= {regex for each in others for regex in each.regexes}
        made = _hyperscan(regexes, alike) if database and regexes else None
        self.hits: Find = made or (_re2(regexes) if regexes else lambda data: [])


def _set_of(regexes: Iterable[str]) -> re2.Set:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = EXPRESSION_MEMORY
    made = re2.Set.SearchSet(options)
    for regex in regexes:
        made.Add(regex)
    made.Compile()
    return made


def _hyperscan(regexes: Sequence[str], alike: Set[str]) -> Find | None:
    """Find with Hyperscan; None where it is not installed. What is in `alike` is told with what it matched."""
    try:
        import hyperscan  # noqa: PLC0415  (an extra, and for raw bytes only)
    except ImportError:
        return None
    database = hyperscan.Database()
    # PREFILTER: what Hyperscan cannot express exactly matches more, never less; it does not go with the start of a match
    kinds = (hyperscan.HS_FLAG_PREFILTER, hyperscan.HS_FLAG_SOM_LEFTMOST)
    flags = [hyperscan.HS_FLAG_MULTILINE | kinds[regex in alike] for regex in regexes]
    database.compile(expressions=[regex.encode() for regex in regexes], ids=list(range(len(regexes))), flags=flags)
    says = [regex in alike for regex in regexes]

    def find(data: bytes) -> list[Hit]:
        found: list[Hit] = []

        def hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            found.append(Hit(end, data[start:end] if says[number] else b""))

        database.scan(data, match_event_handler=hit)
        return found

    return find


def _re2(regexes: Sequence[str]) -> Find:
    """Find with RE2, which names one of several signs in the same place only: nothing is known to be said alike."""
    compiled = expression("(?m)" + "|".join(f"(?:{regex})" for regex in regexes))
    return lambda data: [Hit(hit.end()) for hit in compiled.finditer(data)]
