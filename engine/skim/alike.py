"""Events alike: what was read and matched of a few tells what there is in any text that is equal to theirs but for its digits.

In a storm the same lines come again and again with other times, offsets and ids. Of those that are alike a few are read as any
line is; then one text more is read several times over with other digits in it, which shows where in the text each value of the
event and of its matches stands. From then on the values are taken from their places. That is exact: a text is learnt only if
nothing that is made of it depends on which digit stands where (engine/match/digits), and if all of those readings agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, TypeVar

from msgspec import Struct

from engine.match import Matcher
from engine.match.digits import ALIKE
from engine.match.redact import cut
from engine.model.matches import ActivitySpan, Match, Value
from engine.model.records import Labels, LogEvent, RawLine
from engine.model.rules import Format
from engine.parse import Assembler, decode_block, unwrap_line
from engine.parse.decoding import event_id, labels_of
from engine.parse.times import zone_of
from engine.skim.layouts import Layout
from engine.skim.lines import Place
from engine.skim.screen import decide, digits_matter

LEARNT_AFTER = 8  # texts alike: to learn one costs about as much as to read five
KEPT = 1024  # readings, and texts that are counted
LONGEST = 8192  # bytes of a text

_PLAIN = re.compile(rb"[\t\n -~]*")
_DIGIT = re.compile(rb"[0-9]")
_STAMPS = (b"20110112031425678", b"20240928194306152", b"20371123205817943", b"20991231235959999")
_BASE = 9  # of digits that tell a place: without a zero, which a number would lose in front

_Key = TypeVar("_Key")
_Some = TypeVar("_Some")
_Stretch = tuple[str, Callable[[str], Any], int, int]  # what is written there, and as which type; from where to where
_Read = tuple[LogEvent, list[Match]]
_Teller = Callable[
    [str, Place, "ActivitySpan | None"], "Told | None"
]  # of a text, its place, and the span that was left out before it


class Told(Struct, frozen=True, gc=False):
    """Of an event that needed no reading what LogEvent says of it (see AnyEvent), and its matches. What was open in its source
    before ends in front of it; then comes the span of what was left out between the two, where there is one."""

    source_id: str
    timestamp: datetime
    labels: Labels
    level: str
    message: str
    text: str
    matches: list[Match]
    offset: int
    left_out: ActivitySpan | None = None


class _Reading(Struct, frozen=True):
    """One of several events alike, and where in their texts that stands in which they differ; of captures, for each match.

    `differing` are the fields, as tests name them, in which the events differ, besides their texts.
    """

    like: Told
    message: Sequence[_Stretch]
    labels: Sequence[_Stretch]
    captures: Sequence[Sequence[_Stretch]]
    differing: frozenset[str]


class Known:
    """What is known of the texts in one layout, of whatever sources it does not matter which they are from."""

    def __init__(self) -> None:
        self.readings: dict[bytes, _Reading | None] = {}
        self.counts: dict[bytes, int] = {}


class Alike:
    """Tells events of one source, whose lines have these labels, in one layout."""

    def __init__(
        self, source_id: str, labels: Labels, layout: Layout, matcher: Matcher, formats: Sequence[Format], known: Known
    ) -> None:
        self._source_id, self._labels = source_id, labels
        self._layout, self._matcher, self._formats = layout, matcher, formats
        self._zone = zone_of(labels.get("timezone", ""))
        self._readings, self._counts = known.readings, known.counts
        self._tellers: dict[bytes, _Teller] = {}  # by what texts are alike by

    def tell(self, data: bytes, alike: bytes, place: Place, left_out: ActivitySpan | None = None) -> Told | None:
        """Return the event of `data`, whole lines of which the first is at `place`; None when it has to be read.

        Args:
            alike: the data with every digit a 0.
            left_out: the span of what was left out before it.
        """
        if len(data) > LONGEST:
            return None
        teller = self._tellers.get(alike) or self._made(alike, data, place, len(data))
        if teller is None and alike in self._readings:
            head = len(self._layout.example)
            alike = alike[:head] + data[head:]  # alike in all but the stamp
            teller = self._tellers.get(alike) or self._made(alike, data, place, head)
        return None if teller is None else teller(data.decode("ascii"), place, left_out)

    def _made(self, alike: bytes, data: bytes, place: Place, before: int) -> _Teller | None:
        """Return what tells texts that differ in digits before a place; None when that is not known, or not yet."""
        reading = self._reading(alike, data, place, before)
        if reading is None:
            return None
        teller = self._teller(reading)
        _put(self._tellers, alike, teller)
        return teller

    def _reading(self, alike: bytes, data: bytes, place: Place, before: int) -> _Reading | None:
        """Return how to read texts that differ in digits before a place; None when that is not known, or not yet."""
        if alike in self._readings:
            return self._readings[alike]
        count = self._counts.get(alike, 0) + 1
        if count < LEARNT_AFTER:
            _put(self._counts, alike, count)
            return None
        reading = self._learnt(data, place, before)
        _put(self._readings, alike, reading)
        return reading

    def _learnt(self, data: bytes, place: Place, before: int) -> _Reading | None:
        if _PLAIN.fullmatch(data) is None:
            return None
        texts = [each.decode("ascii") for each in (*_variants(data, self._layout, before), data)]
        read = [each for text in texts if (each := self._read(text, place)) is not None]
        reading = _reading_of(texts[:-1], read[:-1]) if len(read) == len(texts) else None
        if reading is None:
            return None
        teller = self._teller(reading)
        if [teller(text, place, None) for text in texts] != [_said(*each) for each in read]:
            return None
        return None if self._digits_matter(data.translate(ALIKE).rstrip(), before, reading.differing) else reading

    def _digits_matter(self, text: bytes, before: int, fields: Set[str]) -> bool:
        """Tell whether with other digits before a place, and in these fields, something else might be made of `text`."""
        first, plain = text.partition(b"\n")[0], text.decode("ascii")
        if decide((each.header for each in self._formats), first) or self._matcher.redact.may_hold(plain):
            return True
        return digits_matter(self._matcher, text, fields)

    def _read(self, text: str, place: Place) -> _Read | None:
        """Read `text` as any other; None when it is not one event with a stamp, or not all of it."""
        assembler, (offset, number, origin) = Assembler(self._formats), place
        lines = (
            RawLine(self._source_id, offset, each.encode(), number, None, self._labels, origin)
            for each in text.removesuffix("\n").split("\n")
        )
        blocks = [block for each in lines for block in assembler.push(unwrap_line(each, self._formats))]
        events = [event for block in (*blocks, *assembler.flush()) for event in decode_block(block, self._formats)]
        if len(events) != 1 or events[0].text != text.rstrip() or events[0].timestamp is None:
            return None
        return events[0], self._matcher.match_event(events[0])

    def _teller(self, reading: _Reading) -> _Teller:
        """Return what makes an event like that of a reading of a text; None of one whose stamp is no time."""
        source_id, like, layout, zone = self._source_id, reading.like, self._layout, self._zone
        size, line = len(like.text), len(like.text.partition("\n")[0])  # of all texts alike
        given = labels_of(self._labels, like.labels, source_id)
        matches = list(zip(like.matches, reading.captures, strict=True))

        def told(data: str, place: Place, left_out: ActivitySpan | None = None) -> Told | None:
            at = layout.time_in(data, zone)
            if at is None:
                return None
            text, found = data[:size], []
            labels = _taken(given, reading.labels, text) if reading.labels else given
            message = _taken_one(like.message, reading.message, text) if reading.message else like.message
            offset, number, origin = place
            if matches:
                identity = event_id(source_id, at, text[:line], None if layout.fraction else origin or offset)
                evidence = cut(text)
                for match, where in matches:
                    own = _taken(match.captures, where, text) if where else match.captures
                    told_of = (identity, source_id, number, at, True, own, labels, evidence, origin, match.items)
                    found.append(Match(match.rule_id, *told_of))
            return Told(source_id, at, labels, like.level, message, text, found, offset, left_out)

        return told


def _said(event: LogEvent, matches: list[Match]) -> Told:
    return Told(event.source_id, event.at, event.labels, event.level, event.message, event.text, matches, event.offset)


def _taken(like: Mapping[str, _Some], places: Sequence[_Stretch], text: str) -> Mapping[str, _Some]:
    """Return values like these, those that differ from text to text from where they stand in `text`."""
    taken = dict(like)
    for name, make, start, end in places:
        taken[name] = make(text[start:end])
    return taken


def _taken_one(like: str, places: Sequence[_Stretch], text: str) -> str:
    """Return a value like this one, from its place in `text` if it differs from text to text."""
    for _, _, start, end in places:
        return text[start:end]
    return like


def _put(known: dict[_Key, _Some], alike: _Key, value: _Some) -> None:
    if len(known) >= KEPT:
        known.clear()
    known[alike] = value


def _variants(data: bytes, layout: Layout, before: int) -> Iterator[bytes]:
    """Yield texts alike with other digits in the stamp and, before a place, in the rest: such as tell where they stand, but in
    the last one."""
    places = [found.start() for found in _DIGIT.finditer(data[:before])]
    stamp_digits = 17 if layout.fraction else 14
    stamp, rest = places[:stamp_digits], [at for at in places if at >= len(layout.example)]
    for number, digits in enumerate(_STAMPS):
        text = bytearray(data)
        for at, digit in zip(stamp, digits, strict=False):
            text[at] = digit
        for nth, at in enumerate(rest):
            text[at] = ord("9") if number == len(_STAMPS) - 1 else ord("1") + nth // _BASE**number % _BASE
        yield bytes(text)


def _reading_of(texts: Sequence[str], read: Sequence[_Read]) -> _Reading | None:
    """Return where what was read in several texts alike stands in them; None when something of it does in no place, or may in
    several."""
    events, found = [event for event, _ in read], [matches for _, matches in read]
    same = {(event.level, event.exception, tuple(event.labels)) for event in events}
    rules = {tuple((match.rule_id, tuple(match.captures), match.items) for match in matches) for matches in found}
    if len(same) > 1 or len(rules) > 1 or _DIGIT.search(events[0].level.encode()):  # a level may be told by a number
        return None
    fields = [[{name: str(getattr(event, name))} for event in events] for name in ("message", "logger", "thread")]
    captures = [[matches[at].captures for matches in found] for at in range(len(found[0]))]
    values: list[Sequence[Mapping[str, Value]]] = [*fields, [event.labels for event in events], *captures]
    places = [_stretches(texts, each) for each in values]
    known = [each for each in places if each is not None]
    if len(known) < len(places):
        return None
    message, logger, thread, labels, *others = known
    differing = [*(name for name, *_ in (*message, *logger, *thread)), *(f"labels.{name}" for name, *_ in labels)]
    return _Reading(_said(*read[0]), message, labels, others, frozenset((*differing, *(["labels"] if labels else ()))))


def _stretches(texts: Sequence[str], values: Sequence[Mapping[str, Value]]) -> list[_Stretch] | None:
    """Return where those of some values stand in which texts alike differ; None when that is not certain of one."""
    names = [name for name in values[0] if any(each[name] != values[0][name] for each in values)]
    places = [_stretch(texts, name, [each[name] for each in values]) for name in names]
    known = [place for place in places if place is not None]
    return known if len(known) == len(places) else None


def _stretch(texts: Sequence[str], name: str, values: Sequence[Value]) -> _Stretch | None:
    written = [str(each) for each in values]
    size = len(written[0])
    places = [
        at
        for at in _occurrences(texts[0], written[0])
        if all(text[at : at + size] == each for text, each in zip(texts, written, strict=True))
    ]
    return (name, type(values[0]), places[0], places[0] + size) if len(places) == 1 else None


def _occurrences(text: str, sought: str) -> Iterator[int]:
    at = text.find(sought)
    while at >= 0:
        yield at
        at = text.find(sought, at + 1)
