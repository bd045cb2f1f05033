"""Decides a class of events: which rules match all of them, and at which bytes of the text each captured value is.

A class is all events whose texts are equal except for digits. An expression that does not distinguish digits
(engine/match/digits) has the same result for all of them, with captures at the same places. A rule with other expressions is
open: of each event, only these are searched, and the reference decides once for events in which they are at the same places.
A class for which neither is certain is undecided: the reference reads each of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.match import Matcher
from engine.match.checks import Captures, FieldCheck, compile_check, expression
from engine.match.detectors import CONFIGURATION, HEARTBEAT, Detector
from engine.match.digits import ALIKE, is_digit_blind, may_differ
from engine.match.fields import Fields, encoded
from engine.match.values import typed
from engine.model.matches import Value
from engine.model.records import Labels, LogEvent, Record
from engine.model.rules import Plan, Test
from engine.parse import Assembler, decode_block
from engine.parse.headers import Header, header_book
from engine.parse.times import has_millis

_FIELDS = ("message", "logger", "thread")
_PRINTED = re2.compile(r"(?m)^[ \t]*([a-z][\w.-]{0,199}) = ?([^\n]{0,199})$")  # a setting, as in engine/match/dumps

MOST_OUTCOMES = 64  # that are remembered of a class

ClassHit = tuple[str, Captures, tuple[str, ...]]  # rule id, captures, names of the requested items that hold
_GroupSpans = Mapping[str, tuple[int, int]]  # the start and end byte of each group of a header, by name


class Place(NamedTuple):
    """A value in the texts of a class: its name, its type, and its start and end byte in UTF-8."""

    name: str
    type: str
    start: int
    end: int


class ClassValues(Struct, frozen=True):
    """Named values of a class: `same` holds those of the decided event, `places` the places of those that differ by event."""

    same: Mapping[str, Value]
    places: tuple[Place, ...]

    def of(self, text: bytes) -> Mapping[str, Value]:
        """Return the values of an event of the class, by its text."""
        if not self.places:
            return self.same
        values = dict(self.same)
        for name, type_, start, end in self.places:
            values[name] = typed(text[start:end].decode(), type_)
        return values


class MatchShape(Struct, frozen=True):
    """A rule that matches every event of a class, its captures, and the names of the requested items that hold."""

    rule_id: str
    captures: ClassValues
    items: tuple[str, ...] = ()


class EventClass(Struct, frozen=True):
    """The common properties of the events of a class.

    Attributes:
        matches: the rules that match all of them, in the order of the matcher.
        fields: message, logger and thread.
        labels: those that the header gives.
        size: the length of the text in bytes.
        exact: whether the stamp of the header has fractions of seconds.
        redact: redacts the text of an event; None when none of the texts holds a secret.
        open: the rules whose result may differ between its events; None when there are none.
    """

    matches: tuple[MatchShape, ...]
    level: str
    fields: ClassValues
    exception: tuple[str, ...]
    labels: ClassValues
    size: int
    exact: bool
    redact: Callable[[str], str] | None
    open: OpenRules | None = None

    @property
    def may_match(self) -> bool:
        """Whether an event of the class matches a rule or may match one."""
        return bool(self.matches) or self.open is not None


class Undecided(Exception):
    """Raised for a class whose events the reference has to read one by one. The text is the reason, for `scan --stats`."""


class _Example(Struct, frozen=True):
    """The event by which a class is decided.

    Attributes:
        alike: its text with 0 for every digit.
        differing: the fields that differ within the class.
        offsets: the first byte of each field in the text, by name; without fields whose place is not certain.
    """

    fields: Fields
    alike: bytes
    differing: frozenset[str]
    offsets: Mapping[str, int]


class Decider:
    """Decides classes by the reference, which reads one event of each."""

    def __init__(self, plan: Plan, matcher: Matcher) -> None:
        self._plan, self._matcher = plan, matcher
        self._book = header_book(plan.formats)

    def decide(self, records: Sequence[Record]) -> tuple[EventClass, LogEvent]:
        """Return the class of the event that `records` make up, and the event.

        Raises:
            Undecided: the events of the class have to be read one by one.
            Exception: a stage failed on the event.
        """
        event, text = self._read(records)
        header = self._book.read(event.text.partition("\n")[0])
        spans = self._header_spans(header, records[0], text)
        fields = self._fields(event, records[0], text, spans)
        labels = _labels(event, records[0].labels, text, spans)
        if any(map(_has_digits, event.exception)):
            raise Undecided("digits in the name of an exception")
        example = _Example(
            Fields(event),
            text.translate(ALIKE),
            _differing(fields, labels, records[0]),
            {"text": 0} | {place.name: place.start for place in fields.places},
        )
        matches, open_rules = self._matches(example)
        return EventClass(
            matches=tuple(matches),
            level=event.level,
            fields=fields,
            exception=event.exception,
            labels=labels,
            size=len(text),
            exact=header is not None and has_millis(header.time),
            redact=self._matcher.redact.alike(event.text),
            open=OpenRules(open_rules, example) if open_rules else None,
        ), event

    def _read(self, records: Sequence[Record]) -> tuple[LogEvent, bytes]:
        """Return the event of some records, and its text. Raises Undecided unless it is one event with their text."""
        assembler = Assembler(self._plan.formats)
        blocks = [block for record in records for block in assembler.push(record)]
        events = [event for block in (*blocks, *assembler.flush()) for event in decode_block(block, self._plan.formats)]
        if len(events) != 1:
            raise Undecided("several events below one header")
        text = encoded(events[0].text)
        if text != "\n".join(record.text for record in records).rstrip().encode() or events[0].cut:
            raise Undecided("a text that the parser changes")
        return events[0], text

    def _header_spans(self, header: Header | None, record: Record, text: bytes) -> _GroupSpans:
        """Return the places of the groups of the header; of the message alone where a wrapper gives the fields."""
        if record.fields:
            return {"message": (0, len(text.partition(b"\n")[0]))} if header is None else {}
        if header is None or header.format != self._book.find(record.text):
            raise Undecided("a layout that depends on the whole event")
        match = expression(header.format.header).match(text.partition(b"\n")[0])
        return {} if match is None else {name: match.span(number) for name, number in match.re.groupindex.items()}

    def _fields(self, event: LogEvent, record: Record, text: bytes, spans: _GroupSpans) -> ClassValues:
        """Return message, logger and thread with their places; fields that a wrapper gives need none."""
        given = record.fields.keys() | ({"logger", "thread"} if record.fields else set())
        same: dict[str, Value] = {name: getattr(event, name) for name in _FIELDS}
        places = (_place(name, getattr(event, name), text, spans) for name in _FIELDS if name not in given)
        return ClassValues(same, tuple(place for place in places if place is not None))

    def _matches(self, example: _Example) -> tuple[list[MatchShape], list[Detector]]:
        """Return the rules that match every event of the class, and those whose result may differ."""
        fields, shapes, open_rules = example.fields, list[MatchShape](), list[Detector]()
        for detector in self._matcher.possible(fields):
            if any(_open_tests(detector, example)):
                open_rules.append(detector)
                continue
            captures = detector.check(fields)
            if captures is not None:
                shapes.append(MatchShape(detector.rule_id, _located(detector, captures, example), detector.held_items(fields)))
        return shapes, open_rules


def _labels(event: LogEvent, given: Labels, text: bytes, spans: _GroupSpans) -> ClassValues:
    """Return the labels that the header gives."""
    same: dict[str, Value] = {
        name: value for name, value in event.labels.items() if name != "source" and given.get(name) != value
    }
    places = (_place(name, str(value), text, spans) for name, value in same.items())
    return ClassValues(same, tuple(place for place in places if place is not None))


def _place(name: str, value: str, text: bytes, spans: _GroupSpans) -> Place | None:
    """Return the place of a header's value; None when the class has one value. Raises Undecided if the place is unknown."""
    start, end = spans.get(name, (-1, -1))
    if 0 <= start < end and text[start:end] == encoded(value):
        return Place(name, "", start, end)
    if _has_digits(value):
        raise Undecided("a field whose place is not certain")
    return None


def _differing(fields: ClassValues, labels: ClassValues, record: Record) -> frozenset[str]:
    """Return the fields that differ within the class. Fields that a wrapper gives do not: they are part of the class key."""
    differing = {name for name, value in fields.same.items() if _has_digits(value)} - record.fields.keys()
    differing_labels = {f"labels.{name}" for name, value in labels.same.items() if _has_digits(value)}
    return frozenset(differing | differing_labels | ({"labels"} if differing_labels else set()))


def _may_differ(test: Test, example: _Example) -> bool:
    """Return whether the result of a test may differ within the class."""
    return may_differ(test, example.alike) if test.field == "text" else test.field in example.differing


def _open_tests(detector: Detector, example: _Example) -> Iterator[Test]:
    """Yield the tests of a detector whose result may differ within the class. That of a printed configuration does not: only
    its values differ, at known places."""
    tests = () if detector.rule_id.startswith(CONFIGURATION) else detector.digit_tests
    return (test for test in tests if not detector.is_absent(test, example.fields.signs) and _may_differ(test, example))


class ClassFields(Fields):
    """The fields of an event of a class. The event is made when a field other than the text is asked for."""

    __slots__ = ("_make",)

    def __init__(self, text: bytes, make: Callable[[], LogEvent]) -> None:
        self.text, self._make = text, make
        self._folded = None
        self._cache = {"text": (text,)}

    def _texts(self, field: str) -> tuple[str, ...]:
        self._event = self._make()
        return super()._texts(field)


class OpenRules:
    """The rules of a class whose result may differ between its events.

    Only tests that distinguish digits, and values that conditions compare, make it differ. Where these are the same, at the
    same places, so are the matches: the reference decides once for each such outcome.
    """

    def __init__(self, detectors: Sequence[Detector], example: _Example) -> None:
        self._detectors, self._example = detectors, example
        self._parts = [part for detector in detectors for part in _parts_of_outcome(detector, example)]
        self._shapes: dict[Hashable, Sequence[MatchShape | Detector]] = {}  # by outcome

    def hits(self, fields: Fields) -> Iterator[ClassHit]:
        """Yield the rules that match an event of the class."""
        fields.signs = self._example.fields.signs
        outcome = tuple([part(fields) for part in self._parts])
        shapes = self._shapes.get(outcome)
        if shapes is None:
            shapes = list(self._decided(fields)) if len(self._shapes) < MOST_OUTCOMES else self._detectors
            if shapes is not self._detectors:
                self._shapes[outcome] = shapes
        for shape in shapes:
            if isinstance(shape, MatchShape):
                yield shape.rule_id, shape.captures.of(fields.text), shape.items
            elif (captures := shape.check(fields)) is not None:
                yield shape.rule_id, captures, shape.held_items(fields)

    def _decided(self, fields: Fields) -> Iterator[MatchShape | Detector]:
        """Yield the rules that match an event; those to try on each event of the same outcome as they are."""
        example = replace(self._example, fields=fields)
        for detector in self._detectors:
            if any(map(_captures_equal, _open_tests(detector, example))):
                yield detector
            elif (captures := detector.check(fields)) is not None:
                try:
                    yield MatchShape(detector.rule_id, _located(detector, captures, example), detector.held_items(fields))
                except Undecided:
                    yield detector


def _parts_of_outcome(detector: Detector, example: _Example) -> Iterator[Callable[[Fields], Hashable]]:
    """Yield functions of an event that are equal for events for which a rule has the same result, at the same places."""
    for test in _open_tests(detector, example):
        places = [place for place in _captured(test, example) if place.name in detector.compared]
        if is_digit_blind(test) and all(place.start >= 0 for place in places):
            yield from (_slice(place.start, place.end) for place in places)
        elif test.op in ("pattern", "re"):
            yield _occurrence(test, [hole.group for hole in test.captures if hole.name in detector.compared])
        else:
            yield partial(_holds, _check(test))


def _captures_equal(test: Test) -> bool:
    """Return whether captures of a test have to be equal: then it does not take the first occurrence of its expression."""
    return len({hole.name for hole in test.captures}) < len(test.captures)


def _slice(start: int, end: int) -> Callable[[Fields], Hashable]:
    return lambda fields: fields.text[start:end]


def _holds(check: FieldCheck, fields: Fields) -> bool:
    return check(fields) is not None


def _occurrence(test: Test, compared: Sequence[int]) -> Callable[[Fields], Hashable]:
    """Return a function that finds an expression: in which value, the places of its captures, and the texts of the groups
    `compared`; None when it does not occur."""
    field, groups = test.field, [hole.group for hole in test.captures]
    literals = () if test.nocase else tuple(map(encoded, test.literals))
    compiled = expression(test.regex, test.nocase)

    def occurrence(fields: Fields) -> Hashable:
        for number, value in enumerate(fields.values(field)):
            if literals and not all(literal in value for literal in literals):
                continue
            hit = compiled.search(value)
            if hit is not None:
                return number, tuple([hit.span(group) for group in groups]), tuple([hit[group] for group in compared])
        return None

    return occurrence


def _located(detector: Detector, captures: Captures, example: _Example) -> ClassValues:
    """Return captures of the example, with the places of those that differ. Raises Undecided if a place is unknown."""
    if detector.rule_id.endswith(HEARTBEAT) or not any(map(_has_digits, captures.values())):
        return ClassValues(captures, ())
    places: dict[str, Place] = {}
    if detector.rule_id.startswith(CONFIGURATION):
        places = _printed_places(example.fields.text)
    else:
        for test in _holding_tests(detector, example.fields):
            for place in _captured(test, example):
                places.setdefault(place.name, place)
    values = _placed(captures, places, example.fields.text)
    if values is None:
        raise Undecided("a capture whose place is not certain")
    return values


def _holding_tests(detector: Detector, fields: Fields) -> Iterator[Test]:
    """Yield the tests that hold for an event, in the order of precedence of their captures."""
    for groups in detector.items:
        for tests in groups:
            if any(detector.is_absent(test, fields.signs) for test in tests):
                continue
            if all(_check(test)(fields) is not None for test in tests):
                yield from tests
                break


@cache
def _check(test: Test) -> FieldCheck:
    return compile_check(test)


def _captured(test: Test, example: _Example) -> Iterator[Place]:
    """Yield the places of the captures of a test that holds; at -1 where the place of its field is not certain."""
    if not test.captures:
        return
    base = example.offsets.get(test.field)
    for value in example.fields.values(test.field):
        match = expression(test.regex, test.nocase).search(value)
        if match is None:
            continue
        for hole in test.captures:
            if match[hole.group] is not None:
                start, end = match.span(hole.group)
                yield Place(hole.name, hole.type, -1 if base is None else base + start, -1 if base is None else base + end)
        return


def _placed(captures: Captures, places: Mapping[str, Place], text: bytes) -> ClassValues | None:
    """Return captures with the places of those that differ; None when the text has another value at a place."""
    differing_places = []
    for name, value in captures.items():
        if not _has_digits(value):
            continue
        place = places.get(name)
        if place is None or place.start < 0 or typed(text[place.start : place.end].decode(), place.type) != value:
            return None
        differing_places.append(place)
    return ClassValues(captures, tuple(differing_places))


def _printed_places(text: bytes) -> dict[str, Place]:
    """Return the places of the values of a printed configuration, by name."""
    places: dict[str, Place] = {}
    for match in _PRINTED.finditer(text):
        start, end = match.span(2)
        value = text[start:end]
        start += len(value) - len(value.lstrip())
        name = match[1].decode()
        places[name] = Place(name, "", start, start + len(value.strip()))
    return places


def _has_digits(value: Value) -> bool:
    return any(char.isdigit() for char in str(value))


__all__ = ["ClassFields", "ClassHit", "ClassValues", "Decider", "EventClass", "MatchShape", "OpenRules", "Place", "Undecided"]
