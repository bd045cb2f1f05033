"""The screen: which texts may bear something of what is looked for, by the signs of all of it. Most log lines stop here.

It looks at texts with all their digits put to "0", and remembers: a log says the same again and again with other numbers in it,
so that nearly every text is one it has seen. For that its signs are widened until they tell no digit from another, which lets
through a little more of what bears nothing, and holds back nothing that bears something.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.match.checks import EXPRESSION_MEMORY, expression
from engine.match.digits import widened
from engine.match.signs import Signs, kept_name
from engine.ports import Cache

KNOWN_BYTES = 8 << 20  # of events that are remembered
AUDIT_EVERY = 256  # batches of new events: one of them is searched by RE2 too
AUDIT_BYTES = 16 << 10  # of that batch; RE2 takes some 20 us a byte for the signs of all rules
LOG = logging.getLogger("tocsin.match")
PAUSE = 16  # as many times as many events are not remembered where it does not pay


class Borne(Struct, frozen=True):
    """What a text may bear: whether something in it `counts` each time it is said, and from where to where that stands which is
    known once it was said a few times in the same words."""

    counts: bool
    named: Sequence[tuple[int, int]]


_NOTHING = Borne(counts=False, named=())
_Hit = tuple[bool, int, int]  # whether it is named; from where to where
_Find = Callable[[bytes], Sequence[_Hit]]


class Screen:
    """Looks for signs in texts, for one thread at a time.

    Args:
        counted: the signs of what counts each time it is said.
        named: the signs of what is known once it was said a few times in the same words.
        kept: where its database may lie ready.
        database: use Hyperscan where it is installed.

    `complete` tells whether every sign is known; if not, it finds nothing. `regexes` are the signs as they were given. `lost`
    counts the events in which RE2 finds a sign that Hyperscan does not: one batch in AUDIT_EVERY is compared. From the first
    such event on RE2 searches alone, and the log says so.
    """

    def __init__(
        self, counted: Iterable[Signs], named: Iterable[Signs] = (), kept: Cache | None = None, database: bool = True
    ) -> None:
        some, others = list(named), list(counted)
        given = [*others, *some]
        self.regexes = tuple(dict.fromkeys(regex for each in given for regex in each.regexes))
        wide = {regex: widened(regex) or "" for regex in self.regexes}
        self.complete = all(
            each.regexes and "".join(each.regexes).isascii() and all(map(wide.get, each.regexes)) for each in given
        )
        alike = {regex for each in some if each.whole for regex in each.regexes if wide[regex] == regex}
        self._alike = alike - {wide[regex] for each in others for regex in each.regexes}
        self._sought = tuple(dict.fromkeys(wide.values())) if self.complete else ()
        self._kept, self._database = kept, database
        self._known: dict[bytes, Borne | None] = {}
        self._known_bytes = self._asked = 0
        self._batches = self.lost = 0
        self._unremembered = 0  # events that are not worth remembering, still to come

    def bearing(self, text: bytes, begins: Sequence[int]) -> Sequence[tuple[int, Borne]]:
        """Return which of the events that begin in `text` at `begins` may bear something, by number and in order, and what.

        The text is ASCII, and every digit in it is "0".
        """
        if self._known_bytes > KNOWN_BYTES:
            self._forget()
        if self._unremembered > 0:
            self._unremembered -= len(begins)
            return list(self._borne(text, begins).items())
        events = [text[begin:end] for begin, end in pairwise((*begins, len(text)))]
        self._asked += len(events)
        while True:  # once, nearly always: all are known
            try:
                found = list(map(self._known.__getitem__, events))
            except KeyError:
                self._learn([event for event in dict.fromkeys(events) if event not in self._known])
            else:
                return [(number, borne) for number, borne in enumerate(found) if borne is not None]

    @cached_property
    def _find(self) -> _Find:
        """What finds signs; made when first needed, as it may take seconds."""
        if not self._sought:
            return lambda text: ()
        made = _hyperscan(self._sought, self._alike, self._kept) if self._database else None
        return made or self._slow

    @cached_property
    def _slow(self) -> _Find:
        return _re2(self._sought)

    @cached_property
    def by_re2(self) -> Any:
        """All signs as one RE2 set: Match(event) tells whether any of them stands in the event."""
        options = re2.Options()
        options.max_mem, options.never_capture = 8 * EXPRESSION_MEMORY, True
        options.encoding = re2.Options.Encoding.LATIN1
        signs = re2.Set.SearchSet(options)
        for regex in self._sought:
            signs.Add(f"(?m){regex}")
        signs.Compile()
        return signs

    def _learn(self, events: Sequence[bytes]) -> None:
        """Search all at once: one by one costs three times as much."""
        text = b"".join(events)
        self._known.update(dict.fromkeys(events))
        begins = list(accumulate(map(len, events[:-1]), initial=0))
        self._known.update((events[number], borne) for number, borne in self._borne(text, begins).items())
        self._known_bytes += len(text)
        self._batches += 1
        if self._batches % AUDIT_EVERY == 0:
            self._audit(events)

    def _audit(self, events: Sequence[bytes]) -> None:
        """Compare Hyperscan with RE2 on the first AUDIT_BYTES of `events`."""
        if self._find is self._slow:
            return
        ends = accumulate(map(len, events))
        sample = [event for event, end in zip(events, ends, strict=True) if end <= AUDIT_BYTES]
        lost = [event for event in sample if self._known[event] is None and self.by_re2.Match(event)]
        if lost:
            self.lost += len(lost)
            LOG.error(
                "Hyperscan loses matches, RE2 takes its place: %r holds a sign of a rule, and Hyperscan finds none", lost[0]
            )
            self._find = self._slow
            self._known, self._known_bytes = {}, 0

    def _forget(self) -> None:
        """Begin anew; where most events were new, remembering cost more than it saved: it is tried again later."""
        self._unremembered = self._asked * PAUSE if len(self._known) > self._asked / 2 else 0
        self._known, self._known_bytes, self._asked = {}, 0, 0

    def _borne(self, text: bytes, begins: Sequence[int]) -> dict[int, Borne]:
        found: dict[int, Borne] = {}
        for named, start, end in self._find(text):
            number = bisect_right(begins, end - 1) - 1
            borne = found.get(number, _NOTHING)
            begin = begins[number]
            if named and start >= begin:
                found[number] = replace(borne, named=(*borne.named, (start - begin, end - begin)))
            else:  # what began in the event before may hide something
                found[number] = replace(borne, counts=True)
        found.pop(-1, None)  # before the first
        return found


def _hyperscan(regexes: Sequence[str], alike: Set[str], kept: Cache | None) -> _Find | None:
    """Find with Hyperscan; None where it is not installed. What is in `alike` is named."""
    try:
        import hyperscan  # noqa: PLC0415  (not on every machine, and for long logs only)
    except ImportError:
        return None
    # PREFILTER: what Hyperscan cannot express exactly matches more, never less; it does not go with the start of a match
    kinds = (hyperscan.HS_FLAG_PREFILTER, hyperscan.HS_FLAG_SOM_LEFTMOST)
    names = [regex in alike for regex in regexes]
    database = _database(hyperscan, regexes, [hyperscan.HS_FLAG_MULTILINE | kinds[named] for named in names], kept)

    def find(text: bytes) -> Sequence[_Hit]:
        hits: list[_Hit] = []

        def hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((names[number], start, end))

        database.scan(text, match_event_handler=hit)
        return hits

    return find


def _database(hyperscan: Any, regexes: Sequence[str], flags: Sequence[int], kept: Cache | None) -> Any:
    """Return the database that was kept, if it can be used here: Hyperscan looks at its checksum, version and processor."""
    name = f"{kept_name('screen', (hyperscan.__version__, *map(str, flags), *regexes))}.hs"
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


def _re2(regexes: Sequence[str]) -> _Find:
    """Find with RE2, which names one of several signs in the same place only: nothing is known to be said alike."""
    compiled = expression("(?m)" + "|".join(f"(?:{regex})" for regex in regexes))

    def find(text: bytes) -> Sequence[_Hit]:
        return [(False, hit.start(), hit.end()) for hit in compiled.finditer(text)]

    return find
