"""Searching for the signs of a whole plan at once: the gate in the text of an event, the screen in raw bytes.

Both may let through what bears nothing; neither holds back what bears something. Most log lines stop here, at a cost that
hardly grows with the number of rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from engine.match.checks import EXPRESSION_MEMORY, expression
from engine.match.signs import Signs
from engine.ports import Kept


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


@dataclass(frozen=True, slots=True)
class Hits:
    """Where signs end, in order: the position behind each. Of some only what they matched counts, not how often: `named` are
    their numbers among all, in order, and `said` is what each of these matched."""

    ends: Sequence[int]
    named: Sequence[int] = ()
    said: Sequence[bytes] = ()


Find = Callable[[bytes], Hits]


class Screen:
    """Looks for signs in raw bytes, for one thread at a time.

    Args:
        counted: the signs of what counts each time it is said.
        named: the signs of what is known once it was said a few times in the same words.
        kept: where its database may lie ready.
        database: use Hyperscan where it is installed.

    `complete` tells whether every sign is known; if not, hits mean nothing. `regexes` are what it looks for.
    """

    def __init__(
        self, counted: Iterable[Signs], named: Iterable[Signs] = (), kept: Kept | None = None, database: bool = True
    ) -> None:
        some, others = list(named), list(counted)
        given = [*others, *some]
        self.complete = all(each.regexes and "".join(each.regexes).isascii() for each in given)
        self.regexes = regexes = tuple(dict.fromkeys(regex for each in given for regex in each.regexes))
        alike = {regex for each in some if each.whole for regex in each.regexes}
        alike -= {regex for each in others for regex in each.regexes}
        made = _hyperscan(regexes, alike, kept) if database and regexes else None
        self.hits: Find = made or (_re2(regexes) if regexes else lambda data: Hits(()))


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


def _hyperscan(regexes: Sequence[str], alike: Set[str], kept: Kept | None) -> Find | None:
    """Find with Hyperscan; None where it is not installed. What is in `alike` is told with what it matched."""
    try:
        import hyperscan  # noqa: PLC0415  (not on every machine, and for raw bytes only)
    except ImportError:
        return None
    # PREFILTER: what Hyperscan cannot express exactly matches more, never less; it does not go with the start of a match
    kinds = (hyperscan.HS_FLAG_PREFILTER, hyperscan.HS_FLAG_SOM_LEFTMOST)
    flags = [hyperscan.HS_FLAG_MULTILINE | kinds[regex in alike] for regex in regexes]
    database = _database(hyperscan, regexes, flags, kept)
    says = [regex in alike for regex in regexes]

    def find(data: bytes) -> Hits:
        ends: list[int] = []
        named: list[int] = []
        said: list[bytes] = []

        def hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            if says[number]:
                named.append(len(ends))
                said.append(data[start:end])
            ends.append(end)

        database.scan(data, match_event_handler=hit)
        return Hits(ends, named, said)

    return find


def _database(hyperscan: Any, regexes: Sequence[str], flags: Sequence[int], kept: Kept | None) -> Any:
    """Return the database that was kept, if it can be used here: Hyperscan looks at its checksum, version and processor."""
    content = "\0".join((hyperscan.__version__, *map(str, flags), *regexes))
    name = f"screen-{hashlib.sha256(content.encode()).hexdigest()[:32]}.hs"
    stored = kept.load(name) if kept is not None else None
    if stored is not None:
        with suppress(Exception):  # whatever it says of a damaged or foreign database: it can be compiled
            return _loaded(hyperscan, stored)
    database = hyperscan.Database()
    database.compile(expressions=[regex.encode() for regex in regexes], ids=list(range(len(regexes))), flags=flags)
    if kept is not None:
        kept.store(name, hyperscan.dumpb(database))
    return database


def _loaded(hyperscan: Any, stored: bytes) -> Any:
    database = hyperscan.loadb(stored, hyperscan.HS_MODE_BLOCK)
    database.scratch = hyperscan.Scratch(database)
    return database


def _re2(regexes: Sequence[str]) -> Find:
    """Find with RE2, which names one of several signs in the same place only: nothing is known to be said alike."""
    compiled = expression("(?m)" + "|".join(f"(?:{regex})" for regex in regexes))

    def find(data: bytes) -> Hits:
        return Hits([hit.end() for hit in compiled.finditer(data)])

    return find
