"""The matcher: a plan's signatures and component lines compiled once, then applied to one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from functools import cached_property
from itertools import starmap

from msgspec import Struct
from msgspec.structs import replace

from engine.identity_cache import remembered
from engine.match.checks import NOTHING, Captures, FieldCheck, all_of, any_of, compile_check
from engine.match.conditions import condition_of
from engine.match.digits import Numerals, Numeric, blind
from engine.match.dumps import dump_check, dump_signs
from engine.match.fields import Fields
from engine.match.gate import Gate
from engine.match.redact import Redactor, cut, redactor_of
from engine.match.screen import Screen
from engine.match.signs import Signs, signs_in, test_signs
from engine.match.speech import from_loggers
from engine.model.configs import settings_of_plan
from engine.model.expressions import Expression, evaluate, names
from engine.model.matches import Match
from engine.model.records import Labels, LogEvent
from engine.model.rules import Component, Heartbeat, Item, Plan, Signature, Test
from engine.ports import Cache

_NAMES = "/names"


_Known = frozenset[str]  # the signs that the gate looks for


class _Sought(Struct, frozen=True):
    """Something looked for in every event: a rule id, the signs without which it is not tried, and what makes its check.

    `numeric` gives what of it digits matter to.
    """

    rule_id: str
    signs: Signs
    check: Callable[[_Known], FieldCheck]
    numeric: Callable[[], Iterable[Numeric]]


class Matcher:
    """Applies every signature of a plan to events. What is sought is compiled when an event may bear it first, for most rules
    never are; beyond that no event leaves a trace: safe to share and to build anywhere.

    Args:
        kept: where what takes long to compile may lie ready.

    Attributes:
        redact: takes secrets out of texts as the plan says.
    """

    def __init__(self, plan: Plan, kept: Cache | None = None) -> None:
        self._plan, self._kept, self.redact = plan, kept, redactor_of(plan.redaction)
        self._sought = tuple(_sought(plan, signs_in(plan, kept)))
        self._gate = Gate([each.signs for each in self._sought], kept)
        self._known = frozenset(regex for each in self._sought for regex in each.signs.regexes)
        self._checks: dict[int, FieldCheck] = {}

    def screen(self, also: Iterable[str] = ()) -> Screen:
        """Return what tells which texts may bear a match, or one of the expressions `also`."""
        named = [each.signs for each in self._sought if each.rule_id.endswith(_NAMES)]
        counted = [each.signs for each in self._sought if not each.rule_id.endswith(_NAMES)]
        return Screen([*counted, *(Signs((regex,)) for regex in also)], named, self._kept)

    def match_event(self, event: LogEvent) -> list[Match]:
        """Return the matches of `event`, at most one a rule, in the order of the plan; text and captures are redacted.

        Raises ValueError for an operator that does not exist.
        """
        fields = Fields(event)
        fields.signs = self._gate.signs_in(fields.text)
        possible = sorted(self._gate.possible(fields.signs))
        hits = [(self._sought[at].rule_id, found) for at in possible if (found := self._check(at)(fields)) is not None]
        return _matches(event, hits, self.redact) if hits else []

    def match_each(self, event: LogEvent, failures: MutableMapping[str, Exception]) -> list[Match]:
        """Return the matches of those rules that can be tried on `event`, and what the others raise in `failures`."""
        fields = Fields(event)
        fields.signs = self._gate.signs_in(fields.text)
        hits: list[tuple[str, Captures]] = []
        for at in sorted(self._gate.possible(fields.signs)):
            rule_id = self._sought[at].rule_id
            try:
                found = self._check(at)(fields)
            except Exception as error:
                failures[rule_id] = error
            else:
                hits += [(rule_id, found)] if found is not None else []
        return _matches(event, hits, self.redact) if hits else []

    def digits_matter(self, text: bytes, before: int, fields: Set[str]) -> bool:
        """Tell whether other digits before a place in the text of an event (UTF-8) may give it other matches: others than those
        that capture the same stretches of the text.

        Args:
            fields: those that would have other digits too; all else about the event is the same.
        """
        return self._numerals.matter(text, before, fields)

    @cached_property
    def _numerals(self) -> Numerals:
        return Numerals((numeric for each in self._sought for numeric in each.numeric()), self._kept)

    def labels_asked(self, labels: Labels) -> tuple[tuple[str, str], ...]:
        """Return those of an event's labels that a test looks at: whatever the others are, the matches are the same."""
        return tuple(each for each in labels.items() if not self._tested.isdisjoint(("labels", f"labels.{each[0]}")))

    @cached_property
    def _tested(self) -> frozenset[str]:
        """The fields that tests look at."""
        return frozenset(test.field for test in _tests_in(self._plan))

    def _check(self, number: int) -> FieldCheck:
        check = self._checks.get(number)
        if check is None:
            check = self._checks[number] = self._sought[number].check(self._known)
        return check


@remembered
def matcher_of(plan: Plan) -> Matcher:
    """Return the matcher of `plan`, compiled once."""
    return Matcher(plan)


def _matches(event: LogEvent, hits: Sequence[tuple[str, Captures]], redact: Redactor) -> list[Match]:
    redacted = redact(event.text)
    evidence, labels = cut(redacted), redact.labels(event.labels)
    return [
        Match(
            rule_id=rule_id,
            event_id=event.event_id,
            source_id=event.source_id,
            number=event.number,
            at=event.at,
            dated=event.timestamp is not None,
            captures=redact.captures(captures, event.text, redacted),
            labels=labels,
            text=evidence,
            origin=event.origin,
        )
        for rule_id, captures in hits
    ]


def _tests_in(plan: Plan) -> Iterator[Test]:
    """Yield every test that `plan` makes of events."""
    for component in plan.components:
        yield from (*component.names, *component.version, *(beat.test for beat in component.heartbeats))
    for signature in plan.signatures:
        yield from (test for item in _items(signature) for tests in item.any_of for test in tests)


def _sought(plan: Plan, signs: Mapping[str, Signs]) -> list[_Sought]:
    lines = [line for component in plan.components for line in _component_lines(component)]
    return [
        *lines,
        *starmap(_dump, settings_of_plan(plan).items()),
        *(_signature(each, signs[each.rule.id]) for each in plan.signatures),
    ]


def _dump(kind: str, names: Set[str]) -> _Sought:
    signs = dump_signs(kind)
    return _Sought(f"config:{kind}", signs, lambda _known: dump_check(kind, names), lambda: (Numeric(signs, ()),))


def _signature(signature: Signature, signs: Signs) -> _Sought:
    return _Sought(
        signature.rule.id, signs, lambda known: _signature_check(signature, known), lambda: _numeric(signature, signs)
    )


def _items(signature: Signature) -> Sequence[Item]:
    """Return what a signature looks for, and what it leaves out."""
    return signature.items if signature.exceptions is None else (*signature.items, signature.exceptions)


def _numeric(signature: Signature, signs: Signs) -> Iterable[Numeric]:
    """Return what of a signature digits matter to: `signs` are those of all of it."""
    groups = [tests for item in _items(signature) for tests in item.any_of]
    compares = not names(signature.condition) <= {item.name for item in signature.items}
    if compares or signature.unless is not None:  # what was captured
        telling = [[test for test in tests if test.captures or not blind(test)] for tests in groups]
        return [Numeric(signs, tests) for tests in telling if tests]
    return _numeric_tests(groups, signs)


def _numeric_tests(groups: Iterable[Sequence[Test]], signs: Signs) -> Iterable[Numeric]:
    """Return those of several groups of tests to which digits matter; one without signs of its own has those of all."""
    found = [(test_signs([tests]), [test for test in tests if not blind(test)]) for tests in groups]
    return [Numeric(own if own.regexes else signs, tests) for own, tests in found if tests]


def _signature_check(signature: Signature, known: _Known) -> FieldCheck:
    condition, items = signature.condition, signature.items
    decisive = names(condition)
    deciding = {item.name: _any_group(item.any_of, known) for item in items if item.name in decisive}
    adding = tuple(_any_group(item.any_of, known) for item in items if item.name not in decisive)
    return _excepting(signature, from_loggers(_condition_check(condition, deciding, adding), signature.loggers), known)


def _excepting(signature: Signature, check: FieldCheck, known: _Known) -> FieldCheck:
    """Return `check` without the events that the signature's exceptions leave out; what is unknown is no exception."""
    unless = signature.unless
    excepted = _any_group(signature.exceptions.any_of, known) if signature.exceptions is not None else None
    if unless is None and excepted is None:
        return check

    def checked(fields: Fields) -> Captures | None:
        found = check(fields)
        if found is None or (excepted is not None and excepted(fields) is not None):
            return None
        return None if unless is not None and evaluate(unless, found) is True else found

    return checked


def _condition_check(condition: Expression, deciding: Mapping[str, FieldCheck], adding: Sequence[FieldCheck]) -> FieldCheck:
    """Return the check of a whole detection: captures of the items that decide come before those of the others."""
    holds = condition_of(condition, deciding.keys())

    def check(fields: Fields) -> Captures | None:
        answers = {name: found for name, item in deciding.items() if (found := item(fields)) is not None}
        captures = _merged(answers.values())
        if not holds(answers.keys(), captures):
            return None
        return _merged((captures, *(found for item in adding if (found := item(fields)) is not None)))

    return check


def _merged(some: Iterable[Captures]) -> Captures:
    """Return captures in one; the first that captures a name wins."""
    merged: Captures = NOTHING
    for captures in some:
        if captures:
            merged = {**captures, **merged} if merged else captures
    return merged


def _any_group(groups: Iterable[Sequence[Test]], known: _Known) -> FieldCheck:
    return any_of([_group_check(tests, known) for tests in groups])


def _group_check(tests: Sequence[Test], known: _Known) -> FieldCheck:
    """Return the check of tests that must all hold; without one of their signs, where those are looked for, none is asked."""
    check, signs = all_of([compile_check(test) for test in tests]), test_signs([tests]).regexes
    if not signs or not known.issuperset(signs):
        return check
    return lambda fields: None if fields.signs.isdisjoint(signs) else check(fields)


def _component_lines(component: Component) -> list[_Sought]:
    """Return the lines in which a process of `component` says who it is, what version, and that it lives."""
    lines = [_any(f"component:{component.name}/{kind}", tests) for kind, tests in _kinds(component) if tests]
    if component.loggers:
        lines = [replace(each, check=_own_words(component)) if each.rule_id.endswith(_NAMES) else each for each in lines]
    return [*lines, *(_heartbeat(component, index, beat) for index, beat in enumerate(component.heartbeats))]


def _kinds(component: Component) -> tuple[tuple[str, tuple[Test, ...]], ...]:
    return (("names", component.names), ("version", component.version))


def _any(name: str, tests: Sequence[Test]) -> _Sought:
    groups = [(test,) for test in tests]
    signs = test_signs(groups)
    return _Sought(name, signs, lambda known: _any_group(groups, known), lambda: _numeric_tests(groups, signs))


def _own_words(component: Component) -> Callable[[_Known], FieldCheck]:
    """Return what makes the check of the lines in which a process names itself. Their signs are those of the names anywhere."""
    groups = [(test.at_beginning(),) for test in component.names]
    return lambda _known: from_loggers(_any_group(groups, frozenset()), component.loggers)


def _heartbeat(component: Component, index: int, beat: Heartbeat) -> _Sought:
    """Return a heartbeat line; `beat` tells which of the component's heartbeats it is, `every_s` its cadence."""
    said: Captures = {"beat": index, "every_s": beat.every_s}
    holds = compile_check(beat.test)
    check: FieldCheck = lambda fields: said if holds(fields) is not None else None  # noqa: E731
    signs = test_signs([(beat.test,)])
    return _Sought(
        f"component:{component.name}/heartbeat", signs, lambda _known: check, lambda: _numeric_tests([(beat.test,)], signs)
    )
