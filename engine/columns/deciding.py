"""What the reference decides about a whole class of events: which rules match them, and where in the text each value stands.

A class is all events whose texts are equal except for digits. An expression that tells no digit from another
(engine/match/digits) answers alike for all of them and captures the same stretches. A rule with other expressions is open: it
is tried on each event. What is certain of neither leaves the class undecided: the reference reads each of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import re2
from msgspec import Struct

from engine.match import Matcher
from engine.match.checks import Captures, FieldCheck, all_of, any_of, compile_check, expression
from engine.match.detectors import CONFIGURATION, HEARTBEAT, Detector, in_order, signature_check
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

_GroupSpans = Mapping[str, tuple[int, int]]  # where the groups of a header stand in a text, by name


class Place(NamedTuple):
    """Where in the text of an event, as UTF-8, a value stands, and its type."""

    name: str
    type: str
    start: int
    end: int


class ClassValues(Struct, frozen=True):
    """Named values of a class: `same` those of the event that was read, `places` where those stand that differ by event."""

    same: Mapping[str, Value]
    places: tuple[Place, ...]

    def of(self, text: bytes) -> Mapping[str, Value]:
        """Return the values of the event with this text."""
        if not self.places:
            return self.same
        values = dict(self.same)
        for name, type_, start, end in self.places:
            values[name] = typed(text[start:end].decode(), type_)
        return values


class MatchShape(Struct, frozen=True):
    """A rule that matches every event of a class, its captures, and which of the items asked for hold."""

    rule_id: str
    captures: ClassValues
    items: tuple[str, ...] = ()


class OpenRule(Struct, frozen=True):
    """A rule that is tried on each event of a class. `held` returns the items asked for that hold in an event."""

    rule_id: str
    check: FieldCheck
    held: Callable[[Fields], tuple[str, ...]]


class EventClass(Struct, frozen=True):
    """What the events of a class have in common.

    Attributes:
        matches: the rules that match all of them, in the order of the matcher.
        fields: message, logger and thread.
        size: the bytes of their text.
        exact: the stamp of the header has fractions of seconds.
        secret: the text may hold a secret.
        open: the rules that are tried on each event.
        signs: the signs in their text.
    """

    matches: tuple[MatchShape, ...]
    level: str
    fields: ClassValues
    exception: tuple[str, ...]
    labels: ClassValues
    size: int
    exact: bool
    secret: bool
    open: tuple[OpenRule, ...] = ()
    signs: frozenset[str] = frozenset()

    @property
    def bears(self) -> bool:
        """Whether an event of the class matches a rule, or may."""
        return bool(self.matches or self.open)


class Undecided(Exception):
    """The reference has to read each event of a class. The text is the reason, for `scan --stats`."""


class _Example(Struct, frozen=True):
    """The event of a class that is read.

    `alike` is its text with every digit a 0, `moving` the fields that differ within the class, `offsets` where in the text a
    field begins.
    """

    fields: Fields
    alike: bytes
    moving: frozenset[str]
    offsets: Mapping[str, int]


class Decider:
    """Asks the reference about one event for its whole class."""

    def __init__(self, plan: Plan, matcher: Matcher) -> None:
        self._plan, self._matcher = plan, matcher
        self._book = header_book(plan.formats)

    def decide(self, records: Sequence[Record]) -> tuple[EventClass, LogEvent]:
        """Return what the events have in common that differ from that of `records` in digits only, and that event.

        Raises Undecided, and what the stages raise.
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
            _moving(fields, labels, records[0]),
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
            secret=self._matcher.redact.may_hold(event.text),
            open=tuple(open_rules),
            signs=example.fields.signs,
        ), event

    def _read(self, records: Sequence[Record]) -> tuple[LogEvent, bytes]:
        """Return the event of some records, and its text, which is that of the records."""
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
        """Return where the groups of the header stand in a text, or the whole message where a wrapper gives the fields."""
        if record.fields:
            return {"message": (0, len(text.partition(b"\n")[0]))} if header is None else {}
        if header is None or header.format != self._book.find(record.text):
            raise Undecided("a layout that depends on the whole event")
        match = expression(header.format.header).match(text.partition(b"\n")[0])
        return {} if match is None else {name: match.span(number) for name, number in match.re.groupindex.items()}

    def _fields(self, event: LogEvent, record: Record, text: bytes, spans: _GroupSpans) -> ClassValues:
        given = record.fields.keys() | ({"logger", "thread"} if record.fields else set())
        same: dict[str, Value] = {name: getattr(event, name) for name in _FIELDS}
        places = (_place(name, getattr(event, name), text, spans) for name in _FIELDS if name not in given)
        return ClassValues(same, tuple(place for place in places if place is not None))

    def _matches(self, example: _Example) -> tuple[list[MatchShape], list[OpenRule]]:
        """Return the rules that match every event of the class, and those that have to be tried."""
        fields, shapes, open_rules = example.fields, list[MatchShape](), list[OpenRule]()
        for detector in self._matcher.possible(fields):
            if _is_open(detector, example):
                open_rules.append(_open_rule(detector, example))
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
    """Return where a value of a header stands; None when it is the same in the whole class. Raises Undecided."""
    start, end = spans.get(name, (-1, -1))
    if 0 <= start < end and text[start:end] == encoded(value):
        return Place(name, "", start, end)
    if _has_digits(value):
        raise Undecided("a field that stands at no certain place")
    return None


def _moving(fields: ClassValues, labels: ClassValues, record: Record) -> frozenset[str]:
    """Return the fields that differ within the class. What a wrapper gives is part of the class."""
    moving = {name for name, value in fields.same.items() if _has_digits(value)} - record.fields.keys()
    moving_labels = {f"labels.{name}" for name, value in labels.same.items() if _has_digits(value)}
    return frozenset(moving | moving_labels | ({"labels"} if moving_labels else set()))


def _may_differ(test: Test, example: _Example) -> bool:
    """Tell whether a test may answer otherwise for other events of the class."""
    return may_differ(test, example.alike) if test.field == "text" else test.field in example.moving


def _is_open(detector: Detector, example: _Example) -> bool:
    """Tell whether a detector may answer otherwise for other events of the class. The values of a printed configuration have
    their places, whatever their digits."""
    signs = example.fields.signs
    tests = () if detector.rule_id.startswith(CONFIGURATION) else detector.digit_tests
    return any(_may_differ(test, example) for test in tests if not detector.is_absent(test, signs))


def _open_rule(detector: Detector, example: _Example) -> OpenRule:
    """Return the rule of a detector for events of a class, with the answers of most tests taken from the example."""
    signature, signs = detector.signature, example.fields.signs
    check, held = detector.check, detector.held_items
    if signature is not None and signature.exceptions is None:
        items = _checks([(item.name, item.any_of) for item in in_order(signature)], detector, example)
        asked = _checks([(item.name, item.any_of) for item in detector.asked], detector, example)
        check, held = signature_check(signature, items, None), partial(_held, asked)

    def with_signs(fields: Fields) -> Captures | None:
        fields.signs = signs
        return check(fields)

    return OpenRule(detector.rule_id, with_signs, held)


def _held(asked: Mapping[str, FieldCheck], fields: Fields) -> tuple[str, ...]:
    return tuple(name for name, check in asked.items() if check(fields) is not None)


def _checks(
    items: Sequence[tuple[str, Sequence[Sequence[Test]]]], detector: Detector, example: _Example
) -> Mapping[str, FieldCheck]:
    """Return the check of each item for events of the class, without the items that hold of none."""
    checks = ((name, _any_group(groups, detector, example)) for name, groups in items)
    return {name: check for name, check in checks if check is not None}


def _any_group(groups: Sequence[Sequence[Test]], detector: Detector, example: _Example) -> FieldCheck | None:
    """Return the check of several groups of tests, without those that hold of no event of the class; None when none is left."""
    signs = example.fields.signs
    present = [tests for tests in groups if not any(detector.is_absent(test, signs) for test in tests)]
    answers = [[_answered(test, example) for test in tests] for tests in present]
    checks = [all_of([check for check in group if check is not None]) for group in answers if None not in group]
    return any_of(checks) if checks else None


def _answered(test: Test, example: _Example) -> FieldCheck | None:
    """Return a check with the answer that a test has for all events of the class; None where it holds of none; the test itself
    where that is not certain."""
    check = _check(test)
    if not is_digit_blind(test) and _may_differ(test, example):
        return check
    captures = check(example.fields)
    if captures is None:
        return None
    places = {place.name: place for place in reversed(list(_captured(test, example)))}
    values = _placed(captures, places, example.fields.text)
    return check if values is None else lambda fields: values.of(fields.text)


def _located(detector: Detector, captures: Captures, example: _Example) -> ClassValues:
    """Return captures of the example with the places of those that differ within the class. Raises Undecided."""
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
        raise Undecided("a capture that stands at no certain place")
    return values


def _holding_tests(detector: Detector, fields: Fields) -> Iterator[Test]:
    """Yield the tests that hold, in the order in which their captures count."""
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
    """Yield the places of what a test that holds captures; at -1 what is in a field that is at no certain place."""
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
    """Return captures with the places of those that differ within the class; None when one does not stand where it should."""
    differing = []
    for name, value in captures.items():
        if not _has_digits(value):
            continue
        place = places.get(name)
        if place is None or place.start < 0 or typed(text[place.start : place.end].decode(), place.type) != value:
            return None
        differing.append(place)
    return ClassValues(captures, tuple(differing))


def _printed_places(text: bytes) -> dict[str, Place]:
    """Return where the values of a printed configuration stand, by name."""
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


__all__ = ["ClassValues", "Decider", "EventClass", "MatchShape", "OpenRule", "Place", "Undecided"]
