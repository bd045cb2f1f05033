"""What the reference decides of an event, and where in its text that stands: the truth about a whole class of events.

A class is all events whose texts are equal but for their digits. An expression that tells no digit from another
(engine/match/digits) answers alike for all of them and captures the same stretches; what may answer otherwise for other digits
leaves the class undecided, and the reference reads each of its events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import re2
from msgspec import Struct

from engine.match import Matcher
from engine.match.checks import compile_check, expression
from engine.match.digits import ALIKE, DIGITS, Numeric, _matters, _widened
from engine.match.fields import Fields, encoded
from engine.match.gate import Gate
from engine.match.matcher import _Sought
from engine.match.values import typed
from engine.model.configs import settings_of_plan
from engine.model.expressions import names
from engine.model.matches import Value
from engine.model.records import Labels, LogEvent, Record
from engine.model.rules import Format, Plan, Signature, Test
from engine.parse import Assembler, decode_block
from engine.parse.headers import Header, header_book
from engine.parse.times import has_millis

_DIGITS = frozenset(DIGITS.encode())


class Place(Struct, frozen=True):
    """Where in the text of an event, as UTF-8, a value stands, and as which type it is written."""

    name: str
    type: str
    start: int
    end: int


class Values(Struct, frozen=True):
    """Named values: those that are the same in the whole class, and where the others stand."""

    same: Mapping[str, Value]
    places: tuple[Place, ...]

    def of(self, text: bytes) -> Mapping[str, Value]:
        """Return the values of the event with this text."""
        if not self.places:
            return self.same
        own = {place.name: typed(text[place.start : place.end].decode(), place.type) for place in self.places}
        return {name: own.get(name, value) for name, value in self.same.items()}


class MatchShape(Struct, frozen=True):
    """A rule that matches every event of a class, and what it captures."""

    rule_id: str
    captures: Values


class EventClass(Struct, frozen=True):
    """What is so of all events of a class. `size` is the length of their text, `line` of its first line as it came, both as
    UTF-8; `dated` whether the header bears a stamp, `exact` whether that says more than the second; `secret` whether the text
    may hold one."""

    matches: tuple[MatchShape, ...]
    level: str
    message: Values
    labels: Values
    size: int
    line: int
    dated: bool
    exact: bool
    secret: bool


class Decider:
    """Asks the reference of one event for its whole class."""

    def __init__(self, plan: Plan, matcher: Matcher) -> None:
        self._plan, self._matcher = plan, matcher
        self._book = header_book(plan.formats)
        self._signatures = {each.rule.id: each for each in plan.signatures}
        self._numeric = [
            (each.rule_id, numeric)
            for each in matcher._sought
            if not each.rule_id.startswith("config:")
            for numeric in each.numeric()
        ]
        self._gate = Gate([_widened(numeric.signs) for _, numeric in self._numeric])
        self._settings = settings_of_plan(plan)

    def decide(self, records: Sequence[Record]) -> tuple[EventClass, LogEvent] | None:
        """Return what is so of all events that differ from that of `records` in digits only, and that event; None when the
        reference has to read each of them.

        Raises what the stages raise.
        """
        event = self._read(records)
        if event is None:
            return None
        text = encoded(event.text)
        if text != "\n".join(record.text for record in records).rstrip().encode() or event.cut or event.misdated:
            return None
        header = self._book.read(event.text.partition("\n")[0])
        if header is None or header.format != self._book.find(records[0].text):
            return None
        spans = _spans(header, text)
        message = _located("message", event.message, text, spans)
        labels = self._labels(event, records[0].labels, text, spans)
        if message is None or labels is None:
            return None
        moving = {name for name in ("message", "logger", "thread") if _has_digits(getattr(event, name))}
        moving |= {f"labels.{place.name}" for place in labels.places} | ({"labels"} if labels.places else set())
        moving |= {"exception"} if any(map(_has_digits, event.exception)) else set()
        if self._digits_matter(text.translate(ALIKE), moving):
            return None
        matches = self._matches(event, text, message)
        if matches is None:
            return None
        return EventClass(
            matches=matches,
            level=event.level,
            message=message,
            labels=labels,
            size=len(text),
            line=len(encoded(records[0].text)),
            dated=bool(header.time),
            exact=has_millis(header.time),
            secret=self._matcher.redact.may_hold(event.text),
        ), event

    def _read(self, records: Sequence[Record]) -> LogEvent | None:
        assembler = Assembler(self._plan.formats)
        blocks = [block for record in records for block in assembler.push(record)]
        events = [event for block in (*blocks, *assembler.flush()) for event in decode_block(block, self._plan.formats)]
        return events[0] if len(events) == 1 else None

    def _digits_matter(self, text: bytes, moving: set[str]) -> bool:
        possible = self._gate.possible(self._gate.signs_in(text))
        return any(_matters(self._numeric[number][1], text, len(text), moving) for number in possible)

    def _labels(self, event: LogEvent, given: Labels, text: bytes, spans: Mapping[str, tuple[int, int]]) -> Values | None:
        same: dict[str, Value] = {}
        places: list[Place] = []
        for name, value in event.labels.items():
            if name == "source" or given.get(name) == value:
                continue
            located = _located(name, value, text, spans)
            if located is None:
                return None
            same |= located.same
            places += located.places
        return Values(same, tuple(places))

    def _matches(self, event: LogEvent, text: bytes, message: Values) -> tuple[MatchShape, ...] | None:
        fields = Fields(event)
        fields.signs = self._matcher._gate.signs_in(fields.text)
        begin = message.places[0].start if message.places else -1
        offsets = {"text": 0, **({"message": begin} if begin >= 0 else {})}
        shapes = []
        for number in sorted(self._matcher._gate.possible(fields.signs)):
            captures = self._matcher._check(number)(fields)
            if captures is None:
                continue
            sought = self._matcher._sought[number]
            values = self._values(sought, captures, fields, offsets)
            if values is None:
                return None
            shapes.append(MatchShape(sought.rule_id, values))
        return tuple(shapes)

    def _values(
        self, sought: _Sought, captures: Mapping[str, Value], fields: Fields, offsets: Mapping[str, int]
    ) -> Values | None:
        moving = {name: value for name, value in captures.items() if _has_digits(value)}
        if not moving or sought.rule_id.endswith("/heartbeat"):
            return Values(captures, ())
        if sought.rule_id.startswith("config:"):
            places = _printed_places(fields.text)
        else:
            places = {}
            for test in self._holding(sought.rule_id, fields):
                for place in _captured(test, fields, offsets):
                    places.setdefault(place.name, place)
        found = []
        for name, value in moving.items():
            place = places.get(name)
            if place is None or place.start < 0:
                return None
            if typed(fields.text[place.start : place.end].decode(), place.type) != value:
                return None
            found.append(place)
        return Values(captures, tuple(found))

    def _holding(self, rule_id: str, fields: Fields) -> Iterator[Test]:
        """Yield the tests that hold, in the order in which their captures count."""
        signature = self._signatures.get(rule_id)
        groups = _component_groups(self._plan, rule_id) if signature is None else _signature_groups(signature)
        for any_of in groups:
            for tests in any_of:
                if all(_check(test)(fields) is not None for test in tests):
                    yield from tests
                    break


@cache
def _check(test: Test):  # type: ignore[no-untyped-def]
    return compile_check(test)


def _signature_groups(signature: Signature) -> Iterator[Sequence[Sequence[Test]]]:
    decisive = names(signature.condition)
    yield from (item.any_of for item in signature.items if item.name in decisive)
    yield from (item.any_of for item in signature.items if item.name not in decisive)


def _component_groups(plan: Plan, rule_id: str) -> Iterator[Sequence[Sequence[Test]]]:
    name, _, kind = rule_id.removeprefix("component:").partition("/")
    for component in plan.components:
        if component.name == name:
            tests = component.names if kind == "names" else component.version
            own = kind == "names" and component.loggers
            yield [(test.at_beginning() if own else test,) for test in tests]


def _captured(test: Test, fields: Fields, offsets: Mapping[str, int]) -> Iterator[Place]:
    """Yield where the captures of a test that holds stand; at -1 what is in no certain place."""
    if not test.captures:
        return
    for value in fields.values(test.field):
        hit = expression(test.regex, test.nocase).search(value)
        if hit is not None:
            base = offsets.get(test.field)
            for hole in test.captures:
                if hit[hole.group] is not None:
                    start, end = hit.span(hole.group)
                    yield Place(hole.name, hole.type, -1 if base is None else base + start, -1 if base is None else base + end)
            return


def _printed_places(text: bytes) -> Mapping[str, Place]:
    """Return where the values of a printed configuration stand."""
    found: dict[str, Place] = {}
    for hit in _PRINTED.finditer(text):
        start, end = hit.span(2)
        value = text[start:end]
        start += len(value) - len(value.lstrip())
        found[hit[1].decode()] = Place(hit[1].decode(), "", start, start + len(value.strip()))
    return found


_PRINTED = re2.compile(r"(?m)^[ \t]*([a-z][\w.-]{0,199}) = ?([^\n]{0,199})$")


def _spans(header: Header, text: bytes) -> Mapping[str, tuple[int, int]]:
    """Return where what a header says stands in the text, by name."""
    match = expression(header.format.header).match(text.partition(b"\n")[0])
    return {} if match is None else {name: match.span(number) for name, number in match.re.groupindex.items()}


def _located(name: str, value: str, text: bytes, spans: Mapping[str, tuple[int, int]]) -> Values | None:
    """Return a value of a header: where it stands, or that it is the same everywhere; None when neither is certain."""
    start, end = spans.get(name, (-1, -1))
    if 0 <= start < end and text[start:end] == encoded(value):
        return Values({name: value}, (Place(name, "", start, end),))
    return None if _has_digits(value) else Values({name: value}, ())


def _has_digits(value: Value) -> bool:
    return any(char.isdigit() for char in str(value))


__all__ = ["Decider", "EventClass", "Format", "MatchShape", "Numeric", "Place", "Values"]
