"""The matcher: compiles the signatures and component lines of a plan once and applies them to one event at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from functools import cached_property
from itertools import starmap

from msgspec import Struct
from msgspec.structs import replace

from engine.identity_cache import cached_by_identity
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
from engine.model.asked_items import asked_items
from engine.model.configs import settings_of_plan
from engine.model.expressions import Expression, evaluate, names
from engine.model.matches import Match, state_sign
from engine.model.records import Labels, LogEvent
from engine.model.rules import Component, Heartbeat, Item, Plan, Signature, Test
from engine.ports import Cache

_NAMES = "/names"


_GateSigns = frozenset[str]  # the signs that the gate looks for
_Hit = tuple[str, Captures, tuple[str, ...]]  # rule id, captures, the items that held of those that are asked for


class _Sought(Struct, frozen=True):
    """One thing that the matcher looks for in events: a signature, a component line, a printed configuration.

    `signs`: expressions of which one occurs in every event that matches, so that it is not tried on others. `check`: returns
    its check, given the signs that the gate looks for. `numeric`: returns those of its tests to which digits matter. `asked`:
    the items whose truth a match carries, sorted by name.
    """

    rule_id: str
    signs: Signs
    check: Callable[[_GateSigns], FieldCheck]
    numeric: Callable[[], Iterable[Numeric]]
    asked: tuple[Item, ...] = ()


class Matcher:
    """Applies all signatures and component lines of a plan to events.

    A check is compiled when an event may match it for the first time; most never are. A matcher keeps nothing else of an event,
    so it may be shared.

    Args:
        cache: stores what takes long to compile; None: it is compiled anew.

    Attributes:
        redact: the redactor of the plan.
    """

    def __init__(self, plan: Plan, cache: Cache | None = None) -> None:
        self._plan, self._cache, self.redact = plan, cache, redactor_of(plan.redaction)
        self._sought = tuple(_sought(plan, signs_in(plan, cache)))
        self._gate = Gate([sought.signs for sought in self._sought], cache)
        self._gate_signs = frozenset(regex for sought in self._sought for regex in sought.signs.regexes)
        self._checks: dict[int, FieldCheck] = {}
        self._held_items: dict[int, Callable[[Fields], tuple[str, ...]]] = {}

    def screen(self, also: Iterable[str] = ()) -> Screen:
        """Return the screen that tells which texts may match something in the plan, or one of the expressions `also`."""
        named = [sought.signs for sought in self._sought if sought.rule_id.endswith(_NAMES)]
        counted = [sought.signs for sought in self._sought if not sought.rule_id.endswith(_NAMES)]
        return Screen([*counted, *(Signs((regex,)) for regex in also)], named, self._cache)

    def match_event(self, event: LogEvent) -> list[Match]:
        """Return the matches of `event`, at most one a rule, in the order of the plan; text and captures are redacted.

        Raises ValueError for an operator that does not exist.
        """
        fields = Fields(event)
        fields.signs = self._gate.signs_in(fields.text)
        hits: list[_Hit] = []
        for number in sorted(self._gate.possible(fields.signs)):
            captures = self._check(number)(fields)
            if captures is not None:
                hits.append((self._sought[number].rule_id, captures, self._held(number, fields)))
        return _matches(event, hits, self.redact) if hits else []

    def match_each(self, event: LogEvent, failures: MutableMapping[str, Exception]) -> list[Match]:
        """Return the matches of the rules that do not raise on `event`; add the errors of the others to `failures`, by rule
        id."""
        fields = Fields(event)
        fields.signs = self._gate.signs_in(fields.text)
        hits: list[_Hit] = []
        for number in sorted(self._gate.possible(fields.signs)):
            rule_id = self._sought[number].rule_id
            try:
                captures = self._check(number)(fields)
                hits += [(rule_id, captures, self._held(number, fields))] if captures is not None else []
            except Exception as error:
                failures[rule_id] = error
        return _matches(event, hits, self.redact) if hits else []

    def digits_matter(self, text: bytes, before: int, fields: Set[str]) -> bool:
        """Tell whether an event may have other matches, or captures at other places, when the digits in its text differ.

        Args:
            text: of the event, as UTF-8.
            before: only digits before this index differ.
            fields: the other fields in which digits differ; all the rest of the event is the same.
        """
        return self._numerals.matter(text, before, fields)

    @cached_property
    def _numerals(self) -> Numerals:
        return Numerals((numeric for sought in self._sought for numeric in sought.numeric()), self._cache)

    def labels_asked(self, labels: Labels) -> tuple[tuple[str, str], ...]:
        """Return those of `labels`, as name and value, that a test looks at. Matches do not depend on the others."""
        return tuple(label for label in labels.items() if not self._tested.isdisjoint(("labels", f"labels.{label[0]}")))

    @cached_property
    def _tested(self) -> frozenset[str]:
        """The fields that tests look at."""
        return frozenset(test.field for test in _tests_in(self._plan))

    def _check(self, number: int) -> FieldCheck:
        check = self._checks.get(number)
        if check is None:
            check = self._checks[number] = self._sought[number].check(self._gate_signs)
        return check

    def _held(self, number: int, fields: Fields) -> tuple[str, ...]:
        """Return the items asked for that hold in an event that matches. They are tested only now: most events do not match."""
        held = self._held_items.get(number)
        if held is None:
            held = self._held_items[number] = held_items(self._sought[number].asked, self._gate_signs)
        return held(fields)


@cached_by_identity
def matcher_of(plan: Plan) -> Matcher:
    """Return the matcher of `plan`, compiled once."""
    return Matcher(plan)


def _matches(event: LogEvent, hits: Sequence[_Hit], redact: Redactor) -> list[Match]:
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
            items=items,
        )
        for rule_id, captures, items in hits
    ]


def _tests_in(plan: Plan) -> Iterator[Test]:
    """Yield every test of `plan`: those of its components and of its signatures."""
    for component in plan.components:
        yield from (*(test for _, tests in _kinds(component) for test in tests), *(beat.test for beat in component.heartbeats))
    for signature in plan.signatures:
        yield from (test for item in _items(signature) for tests in item.any_of for test in tests)


def _sought(plan: Plan, signs: Mapping[str, Signs]) -> list[_Sought]:
    lines = [line for component in plan.components for line in _component_lines(component)]
    asked = asked_items(plan)
    return [
        *lines,
        *starmap(_dump, settings_of_plan(plan).items()),
        *(_signature(each, signs[each.rule.id], asked.get(each.rule.id, ())) for each in plan.signatures),
    ]


def _dump(kind: str, names: Set[str]) -> _Sought:
    signs = dump_signs(kind)
    return _Sought(f"config:{kind}", signs, lambda _gate_signs: dump_check(kind, names), lambda: (Numeric(signs, ()),))


def _signature(signature: Signature, signs: Signs, asked: Sequence[str]) -> _Sought:
    return _Sought(
        signature.rule.id,
        signs,
        lambda gate_signs: _signature_check(signature, gate_signs),
        lambda: _numeric(signature, signs),
        tuple(sorted((item for item in signature.items if item.name in asked), key=lambda item: item.name)),
    )


def _items(signature: Signature) -> Sequence[Item]:
    """Return the items of a signature, its exceptions included."""
    return signature.items if signature.exceptions is None else (*signature.items, signature.exceptions)


def _numeric(signature: Signature, signs: Signs) -> Iterable[Numeric]:
    """Return the tests of a signature to which digits matter. `signs`: those of the whole signature."""
    groups = [tests for item in _items(signature) for tests in item.any_of]
    compares = not names(signature.condition) <= {item.name for item in signature.items}
    if compares or signature.unless is not None:  # then captures decide, and their digits matter
        deciding = [[test for test in tests if test.captures or not blind(test)] for tests in groups]
        return [Numeric(signs, tests) for tests in deciding if tests]
    return _numeric_tests(groups, signs)


def _numeric_tests(groups: Iterable[Sequence[Test]], signs: Signs) -> Iterable[Numeric]:
    """Return the tests of several groups to which digits matter. A group without signs of its own has `signs`."""
    numeric = [(tests, [test for test in tests if not blind(test)]) for tests in groups]
    return [Numeric(own if (own := test_signs([tests])).regexes else signs, some) for tests, some in numeric if some]


def _signature_check(signature: Signature, gate_signs: _GateSigns) -> FieldCheck:
    condition, items = signature.condition, signature.items
    in_condition = names(condition)
    deciding = {item.name: _any_group(item.any_of, gate_signs) for item in items if item.name in in_condition}
    adding = tuple(
        _any_group(item.any_of, gate_signs) for item in items if item.name not in in_condition and _captures_anything(item)
    )
    return _excepting(signature, from_loggers(_condition_check(condition, deciding, adding), signature.loggers), gate_signs)


def held_items(asked: Sequence[Item], gate_signs: _GateSigns) -> Callable[[Fields], tuple[str, ...]]:
    """Return the function that returns the names of those of `asked` that hold in an event, in their order."""
    checks = tuple((item.name, _any_group(item.any_of, gate_signs)) for item in asked)
    return lambda fields: tuple(name for name, check in checks if check(fields) is not None)


def _captures_anything(item: Item) -> bool:
    return any(test.captures for tests in item.any_of for test in tests)


def _excepting(signature: Signature, check: FieldCheck, gate_signs: _GateSigns) -> FieldCheck:
    """Return `check` without the events that the signature's exceptions leave out. An exception whose value is unknown leaves
    nothing out."""
    unless = signature.unless
    excepted = _any_group(signature.exceptions.any_of, gate_signs) if signature.exceptions is not None else None
    if unless is None and excepted is None:
        return check

    def check_with_exceptions(fields: Fields) -> Captures | None:
        captures = check(fields)
        if captures is None or (excepted is not None and excepted(fields) is not None):
            return None
        return None if unless is not None and evaluate(unless, captures) is True else captures

    return check_with_exceptions


def _condition_check(condition: Expression, deciding: Mapping[str, FieldCheck], adding: Sequence[FieldCheck]) -> FieldCheck:
    """Return the check of a whole detection.

    Args:
        deciding: the checks of the items that the condition names; their captures win over those of `adding`.
        adding: the checks of the other items, which only add captures.
    """
    holds = condition_of(condition, deciding.keys())

    def check(fields: Fields) -> Captures | None:
        by_item = {name: captures for name, item in deciding.items() if (captures := item(fields)) is not None}
        merged = _merged(by_item.values())
        if not holds(by_item.keys(), merged):
            return None
        return _merged((merged, *(captures for item in adding if (captures := item(fields)) is not None)))

    return check


def _merged(in_order: Iterable[Captures]) -> Captures:
    """Return all captures as one mapping; of equal names the first wins."""
    merged: Captures = NOTHING
    for captures in in_order:
        if captures:
            merged = {**captures, **merged} if merged else captures
    return merged


def _any_group(groups: Iterable[Sequence[Test]], gate_signs: _GateSigns) -> FieldCheck:
    return any_of([_group_check(tests, gate_signs) for tests in groups])


def _group_check(tests: Sequence[Test], gate_signs: _GateSigns) -> FieldCheck:
    """Return the check of tests that must all hold. If the gate looks for their signs, an event without any is not tested."""
    check, signs = all_of([compile_check(test) for test in tests]), test_signs([tests]).regexes
    if not signs or not gate_signs.issuperset(signs):
        return check
    return lambda fields: None if fields.signs.isdisjoint(signs) else check(fields)


def _component_lines(component: Component) -> list[_Sought]:
    """Return the lines in which a process of `component` prints its name, its version, and its heartbeats."""
    lines = [_component_line(component, kind, tests) for kind, tests in _kinds(component) if tests]
    return [*lines, *(_heartbeat(component, index, beat) for index, beat in enumerate(component.heartbeats))]


def _kinds(component: Component) -> Iterator[tuple[str, tuple[Test, ...]]]:
    """Yield the rule ids of the lines of `component`, and the tests of each."""
    yield f"component:{component.name}{_NAMES}", component.names
    yield f"component:{component.name}/version", component.version
    for state, phases in component.states.items():
        for number, phase in enumerate(phases):
            yield state_sign(component.name, state, number, "begins"), phase.begins
            yield state_sign(component.name, state, number, "ends"), phase.ends


def component_tests(plan: Plan, rule_id: str) -> tuple[Test, ...]:
    """Return the tests of the component lines `rule_id`, one of which holds in each; none where the plan has no such lines."""
    kinds = ((component, kind, tests) for component in plan.components for kind, tests in _kinds(component))
    return next((_own(component, kind, tests) for component, kind, tests in kinds if kind == rule_id), ())


def _own(component: Component, kind: str, tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """Return the tests as they are made: where the component has loggers, at the beginning of a message; not of a version."""
    return tests if not component.loggers or kind.endswith("/version") else tuple(test.at_beginning() for test in tests)


def _component_line(component: Component, kind: str, tests: tuple[Test, ...]) -> _Sought:
    """Return the lines of one kind. The signs stay those of the tests anywhere in a text, so where these are made at the
    beginning of a message the gate's do not apply."""
    line, own = _any(kind, tests), _own(component, kind, tests)
    if own is tests:
        return line
    groups = [(test,) for test in own]
    return replace(line, check=lambda _gate_signs: from_loggers(_any_group(groups, frozenset()), component.loggers))


def _any(name: str, tests: Sequence[Test]) -> _Sought:
    groups = [(test,) for test in tests]
    signs = test_signs(groups)
    return _Sought(name, signs, lambda gate_signs: _any_group(groups, gate_signs), lambda: _numeric_tests(groups, signs))


def _heartbeat(component: Component, index: int, beat: Heartbeat) -> _Sought:
    """Return a heartbeat line. It captures `beat`, the index among the component's heartbeats, and `every_s`, its interval in
    seconds."""
    captures: Captures = {"beat": index, "every_s": beat.every_s}
    holds = compile_check(beat.test)
    check: FieldCheck = lambda fields: captures if holds(fields) is not None else None  # noqa: E731
    signs = test_signs([(beat.test,)])
    return _Sought(
        f"component:{component.name}/heartbeat", signs, lambda _gate_signs: check, lambda: _numeric_tests([(beat.test,)], signs)
    )
