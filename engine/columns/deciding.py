"""What the reference decides of an event, and where in its text that stands: the truth about a whole class of events.

A class is all events whose texts are equal but for their digits. An expression that tells no digit from another
(engine/match/digits) answers alike for all of them and captures the same stretches; what may answer otherwise for other digits
leaves the class undecided, and the reference reads each of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import re2
from msgspec import Struct

from engine.codec import dumps, loads
from engine.match import Matcher, certain, digits
from engine.match.checks import Captures, FieldCheck, all_of, any_of, compile_check, expression
from engine.match.conditions import condition_of
from engine.match.digits import ALIKE, Numeric, _matters, _may_begin, _widened, blind
from engine.match.fields import Fields, encoded
from engine.match.gate import Gate
from engine.match.matcher import _excepting, _merged, _Sought, component_tests, held_items
from engine.match.signs import kept_name
from engine.match.speech import from_loggers
from engine.match.values import typed
from engine.model.expressions import names
from engine.model.matches import Value
from engine.model.records import Labels, LogEvent, Record
from engine.model.rules import Format, Plan, Signature, Test
from engine.parse import Assembler, decode_block
from engine.parse.headers import Header, header_book
from engine.parse.times import has_millis

_SAID = ("message", "logger", "thread")


class Place(NamedTuple):
    """Where in the text of an event, as UTF-8, a value stands, and as which type it is written."""

    name: str
    type: str
    start: int
    end: int


class ClassValues(Struct, frozen=True):
    """Named values: those that are the same in the whole class, and where the others stand."""

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
    """A rule that matches every event of a class, what it captures, and which of the items that are asked for hold."""

    rule_id: str
    captures: ClassValues
    items: tuple[str, ...] = ()


class EventClass(Struct, frozen=True):
    """What is so of all events of a class. `size` is the length of their text, `line` of its first line as it came, both as
    UTF-8; `fields` are message, logger and thread; `dated` whether the header bears a stamp, `exact` whether that says more
    than the second; `secret` whether the text may hold one. `open` are the rules that digits matter to: each event is tried."""

    matches: tuple[MatchShape, ...]
    level: str
    fields: ClassValues
    exception: tuple[str, ...]
    labels: ClassValues
    size: int
    line: int
    dated: bool
    exact: bool
    secret: bool
    open: tuple[OpenRule, ...] = ()

    @property
    def bears(self) -> bool:
        """Whether an event of the class matches a rule, or may."""
        return bool(self.matches or self.open)


class OpenRule(Struct, frozen=True):
    """A rule that has to be tried on each event of a class; `held` returns the items that are asked for and hold in one."""

    rule_id: str
    check: FieldCheck
    held: Callable[[Fields], tuple[str, ...]]


class _Seen(Struct, frozen=True):
    """An event of a class: its fields, its text with every digit a 0, the fields that differ within the class, and where in the
    text a field begins."""

    fields: Fields
    alike: bytes
    moving: frozenset[str]
    offsets: Mapping[str, int]


class Decider:
    """Asks the reference of one event for its whole class."""

    def __init__(self, plan: Plan, matcher: Matcher) -> None:
        self._plan, self._matcher = plan, matcher
        self._book = header_book(plan.formats)
        self._signatures = {each.rule.id: each for each in plan.signatures}
        self._numeric = _numeric_in(plan, matcher)
        self._gate = Gate([_widened(numeric.signs) for _, numeric in self._numeric], matcher._cache)

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
        if records[0].fields:
            spans = {"message": (0, len(text.partition(b"\n")[0]))} if header is None else {}
        elif header is not None and header.format == self._book.find(records[0].text):
            spans = _spans(header, text)
        else:
            return None
        told = records[0].fields.keys() | ({"logger", "thread"} if records[0].fields else set())
        said = [
            ClassValues({name: getattr(event, name)}, ()) if name in told else _located(name, getattr(event, name), text, spans)
            for name in _SAID
        ]
        labels = self._labels(event, records[0].labels, text, spans)
        if None in said or labels is None:
            return None
        fields = _together(each for each in said if each is not None)
        if any(map(_has_digits, event.exception)):
            return None
        moving = {name for name, value in fields.same.items() if _has_digits(value)}
        moving -= records[0].fields.keys()  # they are told apart
        own_labels = {f"labels.{name}" for name, value in labels.same.items() if _has_digits(value)}
        moving |= own_labels | ({"labels"} if own_labels else set())
        offsets = {"text": 0} | {each.name: each.start for each in fields.places}
        seen = _Seen(Fields(event), text.translate(ALIKE), frozenset(moving), offsets)
        open_ = self._open(seen)
        matches = self._matches(seen, open_)
        if matches is None:
            return None
        return EventClass(
            matches=matches,
            level=event.level,
            fields=fields,
            exception=event.exception,
            labels=labels,
            size=len(text),
            line=len(encoded(records[0].text)),
            dated=header is not None and bool(header.time),
            exact=header is not None and has_millis(header.time),
            secret=self._matcher.redact.may_hold(event.text),
            open=tuple(self._open_rule(number, seen) for number in sorted(open_)),
        ), event

    def _read(self, records: Sequence[Record]) -> LogEvent | None:
        assembler = Assembler(self._plan.formats)
        blocks = [block for record in records for block in assembler.push(record)]
        events = [event for block in (*blocks, *assembler.flush()) for event in decode_block(block, self._plan.formats)]
        return events[0] if len(events) == 1 else None

    def _open(self, seen: _Seen) -> Set[int]:
        """Return the rules, by number, that other digits in the text, or in fields that differ in the class, may matter to."""
        alike = seen.alike
        possible = (self._numeric[number] for number in sorted(self._gate.possible(self._gate.signs_in(alike))))
        return {number for number, numeric in possible if _matters(numeric, alike, len(alike), seen.moving)}

    def _open_rule(self, number: int, seen: _Seen) -> OpenRule:
        sought = self._matcher._sought[number]
        return OpenRule(sought.rule_id, self._check(number, seen), held_items(sought.asked, frozenset()))

    def _check(self, number: int, seen: _Seen) -> FieldCheck:
        """Return the check of a rule for events of a class, in which most of its tests are answered."""
        sought = self._matcher._sought[number]
        signature = self._signatures.get(sought.rule_id)
        if signature is None or "logger" in seen.moving or signature.exceptions is not None:
            return sought.check(frozenset())
        decisive = names(signature.condition)
        items = [(item.name, _any_group(item.any_of, seen)) for item in signature.items]
        deciding = {name: check for name, check in items if check is not None and name in decisive}
        adding = [check for name, check in items if check is not None and name not in decisive]
        holds = condition_of(signature.condition, {name for name, _ in items if name in decisive})

        def check(fields: Fields) -> Captures | None:
            answers = {name: captures for name, item in deciding.items() if (captures := item(fields)) is not None}
            captures = _merged(answers.values())
            if not holds(answers.keys(), captures):
                return None
            return _merged((captures, *(own for item in adding if (own := item(fields)) is not None)))

        return _excepting(signature, from_loggers(check, signature.loggers), frozenset())

    def _labels(self, event: LogEvent, given: Labels, text: bytes, spans: Mapping[str, tuple[int, int]]) -> ClassValues | None:
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
        return ClassValues(same, tuple(places))

    def _matches(self, seen: _Seen, tried: Set[int]) -> tuple[MatchShape, ...] | None:
        """Return the rules that match, without those that are `tried` on each event; None when it is not certain where what one
        captures stands."""
        fields = seen.fields
        fields.signs = self._matcher._gate.signs_in(fields.text)
        shapes = []
        for number in sorted(self._matcher._gate.possible(fields.signs)):
            sought = self._matcher._sought[number]
            captures = self._matcher._check(number)(fields) if number not in tried else None
            if captures is None:
                continue
            values = self._values(sought, captures, seen)
            if values is None:
                return None
            shapes.append(MatchShape(sought.rule_id, values, self._matcher._held(number, fields)))
        return tuple(shapes)

    def _values(self, sought: _Sought, captures: Mapping[str, Value], seen: _Seen) -> ClassValues | None:
        moving = {name: value for name, value in captures.items() if _has_digits(value)}
        if not moving or sought.rule_id.endswith("/heartbeat"):
            return ClassValues(captures, ())
        places: dict[str, Place] = {}
        if sought.rule_id.startswith("config:"):
            places = _printed_places(seen.fields.text)
        else:
            for test in self._holding(sought.rule_id, seen.fields):
                for place in _captured(test, seen):
                    places.setdefault(place.name, place)
        return _placed(captures, places, seen.fields.text)

    def _holding(self, rule_id: str, fields: Fields) -> Iterator[Test]:
        """Yield the tests that hold, in the order in which their captures count."""
        signature = self._signatures.get(rule_id)
        groups = (
            [[(test,) for test in component_tests(self._plan, rule_id)]] if signature is None else _signature_groups(signature)
        )
        for item in groups:
            for tests in item:
                if all(_check(test)(fields) is not None for test in tests):
                    yield from tests
                    break


def _numeric_in(plan: Plan, matcher: Matcher) -> list[tuple[int, Numeric]]:
    """Return the tests that digits matter to, by the number of what they are of; printed settings are told by their places.

    They may lie ready: to look at all of them takes as long as to scan a small log.
    """
    kept = matcher._cache if plan.hash else None
    name = f"{kept_name('digits', (plan.hash,), (__file__, digits.__file__, certain.__file__))}.json"
    if kept is not None:
        with suppress(ValueError):  # damaged: it can be made again
            return loads(kept.load(name) or "", list[tuple[int, Numeric]])
    numbered = [(n, each) for n, each in enumerate(matcher._sought) if not each.rule_id.startswith("config:")]
    made = [(number, numeric) for number, each in numbered for numeric in each.numeric()]
    if kept is not None:
        kept.store(name, dumps(made).encode())
    return made


@cache
def _check(test: Test) -> FieldCheck:
    return compile_check(test)


def _signature_groups(signature: Signature) -> Iterator[Sequence[Sequence[Test]]]:
    decisive = names(signature.condition)
    yield from (item.any_of for item in signature.items if item.name in decisive)
    yield from (item.any_of for item in signature.items if item.name not in decisive)


def _captured(test: Test, seen: _Seen) -> Iterator[Place]:
    """Yield where the captures of a test that holds stand; at -1 what is in no certain place."""
    if not test.captures:
        return
    for value in seen.fields.values(test.field):
        hit = expression(test.regex, test.nocase).search(value)
        if hit is not None:
            base = seen.offsets.get(test.field)
            for hole in test.captures:
                if hit[hole.group] is not None:
                    start, end = hit.span(hole.group)
                    yield Place(hole.name, hole.type, -1 if base is None else base + start, -1 if base is None else base + end)
            return


def _placed(captures: Mapping[str, Value], places: Mapping[str, Place], text: bytes) -> ClassValues | None:
    """Return captures with the places of those that differ within the class; None when one is not where it should be."""
    found = []
    for name, value in captures.items():
        if not _has_digits(value):
            continue
        place = places.get(name)
        if place is None or place.start < 0 or typed(text[place.start : place.end].decode(), place.type) != value:
            return None
        found.append(place)
    return ClassValues(captures, tuple(found))


def _any_group(groups: Sequence[Sequence[Test]], seen: _Seen) -> FieldCheck | None:
    """Return the check of several groups of tests, without those that hold of no event of the class; None when none is left."""
    checks = [[_answered(test, seen) for test in tests] for tests in groups]
    left = [all_of([check for check in some if check is not None]) for some in checks if None not in some]
    return any_of(left) if left else None


def _answered(test: Test, seen: _Seen) -> FieldCheck | None:
    """Return what answers a test for events of a class: what holds of all of them, None where it holds of none; where that is
    not certain, the test itself."""
    check = _check(test)
    if not blind(test) and _may_differ(test, seen):
        return check
    captures = check(seen.fields)
    if captures is None:
        return None
    values = _placed(captures, {place.name: place for place in reversed(list(_captured(test, seen)))}, seen.fields.text)
    return check if values is None else lambda fields: values.of(fields.text)


def _may_differ(test: Test, seen: _Seen) -> bool:
    return _may_begin(test, seen.alike, len(seen.alike)) if test.field == "text" else test.field in seen.moving


def _printed_places(text: bytes) -> dict[str, Place]:
    """Return where the values of a printed configuration stand."""
    found: dict[str, Place] = {}
    for hit in _PRINTED.finditer(text):
        start, end = hit.span(2)
        value = text[start:end]
        start += len(value) - len(value.lstrip())
        found[hit[1].decode()] = Place(hit[1].decode(), "", start, start + len(value.strip()))
    return found


_PRINTED = re2.compile(r"(?m)^[ \t]*([a-z][\w.-]{0,199}) = ?([^\n]{0,199})$")


def _spans(header: Header, text: bytes) -> dict[str, tuple[int, int]]:
    """Return where what a header says stands in the text, by name."""
    match = expression(header.format.header).match(text.partition(b"\n")[0])
    return {} if match is None else {name: match.span(number) for name, number in match.re.groupindex.items()}


def _located(name: str, value: str, text: bytes, spans: Mapping[str, tuple[int, int]]) -> ClassValues | None:
    """Return a value of a header: where it stands, or that it is the same everywhere; None when neither is certain."""
    start, end = spans.get(name, (-1, -1))
    if 0 <= start < end and text[start:end] == encoded(value):
        return ClassValues({name: value}, (Place(name, "", start, end),))
    return None if _has_digits(value) else ClassValues({name: value}, ())


def _together(some: Iterable[ClassValues]) -> ClassValues:
    every = list(some)
    same = {name: value for each in every for name, value in each.same.items()}
    return ClassValues(same, tuple(place for each in every for place in each.places))


def _has_digits(value: Value) -> bool:
    return any(char.isdigit() for char in str(value))


__all__ = ["ClassValues", "Decider", "EventClass", "Format", "MatchShape", "Numeric", "Place"]
