"""The prefilter: which signs of a plan (engine/model/signs) stand in a text, searched for all at once.

Hyperscan searches where it is installed, else a set of RE2. Both find the same: every sign that stands in the folded text.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

import re2

from engine.match.checks import EXPRESSION_MEMORY
from engine.model.signs import folded
from engine.ports import Cache

AUDIT_EVERY = 4096  # texts: one of them is searched by RE2 too
LOG = logging.getLogger("tocsin.match")


class SignSearch(Protocol):
    """Searches for a fixed sequence of texts."""

    def search(self, text: bytes) -> Sequence[int]:
        """Return the numbers of the texts that stand in `text`, in any order; a number may be repeated."""
        ...


class Prefilter:
    """Finds signs in texts. It may be shared by threads.

    Args:
        signs: folded texts.
        cache: where a compiled database is stored.
        hyperscan: use Hyperscan if it is installed.

    Attributes:
        signs: the signs, each once.
        lost: how many texts had a sign that Hyperscan did not find: one text in AUDIT_EVERY is compared. From the first such
            text on RE2 searches alone, and the log says so.
    """

    def __init__(self, signs: Iterable[str], cache: Cache | None = None, hyperscan: bool = True) -> None:
        self._ordered = tuple(dict.fromkeys(signs))
        self.signs = frozenset(self._ordered)
        self._cache, self._hyperscan = cache, hyperscan
        self._search: SignSearch | None = None  # made for the first text
        self._searched = self.lost = 0

    def signs_in(self, text: bytes) -> frozenset[str]:
        """Return the signs that stand in `text` (UTF-8)."""
        if not self._ordered:
            return frozenset()
        search = self._search or self._made()
        text = folded(text)
        numbers = search.search(text)
        self._searched += 1
        if self._searched % AUDIT_EVERY == 0:
            numbers = self._audited(text, numbers)
        return frozenset([self._ordered[number] for number in numbers]) if numbers else frozenset()

    def _made(self) -> SignSearch:
        search = _hyperscan_of(self._ordered, self._cache) if self._hyperscan else None
        self._search = search or _re2_of(self._ordered)
        return self._search

    def _audited(self, text: bytes, numbers: Sequence[int]) -> Sequence[int]:
        """Return the signs in `text` by RE2, which takes the place of Hyperscan if that found fewer."""
        expected = _re2_of(self._ordered).search(text)
        if not set(expected) <= set(numbers):
            self.lost += 1
            LOG.error("Hyperscan loses matches, RE2 takes its place: %r holds a sign of a rule, and Hyperscan finds none", text)
            self._search = _re2_of(self._ordered)
        return expected


class _Database:
    """A database of Hyperscan."""

    def __init__(self, hyperscan: Any, database: Any) -> None:
        self._database, self._scratch = database, hyperscan.Scratch(database)
        self._lock = Lock()  # one scan at a time may use the scratch space

    def search(self, text: bytes) -> Sequence[int]:
        numbers: list[int] = []
        with self._lock:
            self._database.scan(text, match_event_handler=_note, context=numbers, scratch=self._scratch)
        return numbers


def _note(number: int, _start: int, _end: int, _flags: int, numbers: list[int]) -> None:
    numbers.append(number)


class _Set:
    """A set of RE2."""

    def __init__(self, signs: Sequence[str]) -> None:
        options = re2.Options()
        options.max_mem, options.never_capture, options.literal = 8 * EXPRESSION_MEMORY, True, True
        options.encoding = re2.Options.Encoding.LATIN1
        self._set = re2.Set.SearchSet(options)
        for sign in signs:
            self._set.Add(sign.encode())
        self._set.Compile()

    def search(self, text: bytes) -> Sequence[int]:
        numbers: Sequence[int] = self._set.Match(text) or ()
        return numbers


_re2_of = lru_cache(maxsize=2)(_Set)


def _hyperscan_of(signs: tuple[str, ...], cache: Cache | None) -> _Database | None:
    """Return the database of `signs`, read from `cache` or compiled; None where Hyperscan is not installed."""
    hyperscan = _library()
    if hyperscan is None:
        return None
    if cache is None:
        return _Database(hyperscan, _compiled(hyperscan, signs))
    digest = hashlib.sha256("\0".join((hyperscan.__version__, *signs)).encode()).hexdigest()[:32]
    name = f"prefilter-{digest}.hs"
    stored = cache.load(name)
    if stored is not None:
        with suppress(Exception):  # damaged, or of another processor: Hyperscan compares its checksum and version
            return _Database(hyperscan, hyperscan.loadb(stored, hyperscan.HS_MODE_BLOCK))
    database = _compiled(hyperscan, signs)
    cache.store(name, hyperscan.dumpb(database))
    return _Database(hyperscan, database)


def _library() -> Any:
    """Return the module `hyperscan`; None where it is not installed."""
    try:
        import hyperscan  # noqa: PLC0415  (not on every machine)
    except ImportError:
        return None
    return hyperscan


@lru_cache(maxsize=4)
def _compiled(hyperscan: Any, signs: tuple[str, ...]) -> Any:
    database = hyperscan.Database()
    numbers = list(range(len(signs)))
    texts = [sign.encode() for sign in signs]
    database.compile(expressions=texts, ids=numbers, flags=hyperscan.HS_FLAG_SINGLEMATCH, literal=True)
    return database
