"""Compiles what a plan looks for in events into detectors: one for each signature, component line and printed configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from engine.match.checks import NOTHING, Captures, FieldCheck, all_of, any_of, compile_check
from engine.match.conditions import condition_of
from engine.match.digits import is_digit_blind
from engine.match.dumps import dump_check, dump_signs
from engine.match.fields import Fields
from engine.match.speech import from_loggers
from engine.model.asked_items import asked_items
from engine.model.configs import settings_of_plan
from engine.model.expressions import evaluate, names
from engine.model.matches import ANSWER_SIGN, answer_sign, state_sign
from engine.model.rules import Component, Heartbeat, Item, Plan, Signature, Test

# in the rule ids of lines that are no signature's
CONFIGURATION, NAMES, VERSION, HEARTBEAT = "config:", "/names", "/version", "/heartbeat"

Group = Sequence[Test]  # tests that must all hold
Signs = frozenset[str]  # all that the prefilter searches for
_CompileCheck = Callable[[Signs], FieldCheck]


class Detector:
    """One thing that a matcher looks for in events.

    Its checks are compiled when they are first needed, because most never are. They expect `Fields.signs` to be set: a group of
    tests is skipped when none of the signs of a test is there.

    Args:
        compile_check: returns the check, given the signs that are searched for.

    Attributes:
        rule_id: the rule id of its matches.
        signs: one of them stands in the text of every event that it matches; empty: it is tried on each event.
        items: the groups of tests that may hold, item by item, in the order in which their captures count.
        asked: the items whose truth a match carries, sorted by name.
        signature: the signature that it is of; None for component lines and configurations.
        searched: all signs that the prefilter searches for.
    """

    def __init__(
        self,
        rule_id: str,
        signs: Sequence[str],
        compile_check: _CompileCheck,
        items: Sequence[Sequence[Group]] = (),
        asked: Sequence[Item] = (),
        signature: Signature | None = None,
    ) -> None:
        self.rule_id, self.signs, self.items, self.signature = rule_id, signs, items, signature
        self.searched: Signs = frozenset()
        self._compile_check, self.asked = compile_check, asked

    @cached_property
    def check(self) -> FieldCheck:
        """The check of an event."""
        return self._compile_check(self.searched)

    def held_items(self, fields: Fields) -> tuple[str, ...]:
        """Return the names of the items asked for that hold in an event that matches, sorted."""
        return tuple(name for name, check in self._held if check(fields) is not None)

    @cached_property
    def _held(self) -> Sequence[tuple[str, FieldCheck]]:
        return [(item.name, _any_group(item.any_of, self.searched)) for item in self.asked]

    def is_absent(self, test: Test, signs: Signs) -> bool:
        """Tell whether `test` cannot hold in an event with these `signs`, by the prefilter alone."""
        return bool(test.signs) and signs.isdisjoint(test.signs) and self.searched.issuperset(test.signs)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The names of the captures on whose values it depends whether an event matches."""
        signature = self.signature
        if signature is None:
            return frozenset()
        unless = frozenset() if signature.unless is None else names(signature.unless)
        return unless | (names(signature.condition) - {item.name for item in signature.items})

    @cached_property
    def digit_tests(self) -> Sequence[Test]:
        """The tests that may answer or capture otherwise when digits in an event differ, where that matters to its matches."""
        groups = [tests for item in self.items for tests in item]
        if self.signature is not None and self.signature.exceptions is not None:
            groups += self.signature.exceptions.any_of
        return [test for tests in groups for test in tests if not is_digit_blind(test) or self.is_compared(test)]

    def is_compared(self, test: Test) -> bool:
        """Tell whether `test` captures one of the compared values."""
        return any(hole.name in self.compared for hole in test.captures)


def detectors_of(plan: Plan) -> list[Detector]:
    """Return the detectors of `plan`: those of component lines, of configurations, and of signatures, in the plan's order."""
    asked = asked_items(plan)
    detectors = [
        *(line for component in plan.components for line in _component_lines(component)),
        *(_configuration(kind, settings) for kind, settings in settings_of_plan(plan).items()),
        *(_of_signature(signature, asked.get(signature.rule.id, ())) for signature in plan.signatures),
    ]
    searched = frozenset(sign for detector in detectors for sign in detector.signs)
    for detector in detectors:
        detector.searched = searched
    return detectors


def every_test(plan: Plan) -> Iterator[Test]:
    """Yield every test of `plan`: those of its components and of its signatures."""
    for component in plan.components:
        yield from (test for _, tests in _kinds(component) for test in tests)
        yield from (beat.test for beat in component.heartbeats)
    for signature in plan.signatures:
        exceptions = () if signature.exceptions is None else (signature.exceptions,)
        yield from (test for item in (*signature.items, *exceptions) for tests in item.any_of for test in tests)


def merged(in_order: Iterable[Captures]) -> Captures:
    """Return all captures as one mapping; of equal names the first wins."""
    captures: Captures = NOTHING
    for more in in_order:
        if more:
            captures = {**more, **captures} if captures else more
    return captures


def signature_check(signature: Signature, items: Mapping[str, FieldCheck], exceptions: FieldCheck | None) -> FieldCheck:
    """Return the check of a signature.

    Args:
        items: the checks of its items, in their order; one that is missing never holds. Captures of items that the condition
            names win over those of the others, which only add captures.
        exceptions: the check of events that are left out. An exception whose value is unknown leaves nothing out.
    """
    decisive, unless = names(signature.condition), signature.unless
    deciding = [(name, check) for name, check in items.items() if name in decisive]
    adding = [check for name, check in items.items() if name not in decisive]
    holds = condition_of(signature.condition, {item.name for item in signature.items} & decisive)

    def check(fields: Fields) -> Captures | None:
        by_item = {name: captures for name, item in deciding if (captures := item(fields)) is not None}
        captures = merged(by_item.values())
        if not holds(by_item.keys(), captures):
            return None
        captures = merged((captures, *(more for item in adding if (more := item(fields)) is not None)))
        if exceptions is not None and exceptions(fields) is not None:
            return None
        return None if unless is not None and evaluate(unless, captures) is True else captures

    return from_loggers(check, signature.loggers)


def _of_signature(signature: Signature, asked: Sequence[str]) -> Detector:
    return Detector(
        signature.rule.id,
        signature.signs,
        lambda searched: _compiled(signature, searched),
        [item.any_of for item in in_order(signature)],
        sorted((item for item in signature.items if item.name in asked), key=lambda item: item.name),
        signature,
    )


def in_order(signature: Signature) -> Sequence[Item]:
    """Return the items of a signature in the order in which their captures count."""
    decisive = names(signature.condition)
    return sorted(signature.items, key=lambda item: item.name not in decisive)


def _compiled(signature: Signature, searched: Signs) -> FieldCheck:
    decisive = names(signature.condition)
    needed = (item for item in signature.items if item.name in decisive or _captures_anything(item))
    exceptions = None if signature.exceptions is None else _any_group(signature.exceptions.any_of, searched)
    return signature_check(signature, {item.name: _any_group(item.any_of, searched) for item in needed}, exceptions)


def _captures_anything(item: Item) -> bool:
    return any(test.captures for tests in item.any_of for test in tests)


def _any_group(groups: Iterable[Group], searched: Signs) -> FieldCheck:
    return any_of([_group_check(tests, searched) for tests in groups])


def _group_check(tests: Group, searched: Signs) -> FieldCheck:
    """Return the check of tests that must all hold. An event without any of the signs of one of them is not tested."""
    check = all_of([compile_check(test) for test in tests])
    signs = next((test.signs for test in tests if test.signs and searched.issuperset(test.signs)), ())
    return check if not signs else lambda fields: None if fields.signs.isdisjoint(signs) else check(fields)


def _configuration(kind: str, settings: Set[str]) -> Detector:
    return Detector(f"{CONFIGURATION}{kind}", dump_signs(kind), lambda _searched: dump_check(kind, settings))


def _component_lines(component: Component) -> list[Detector]:
    """Return the lines in which a process of `component` prints its name, its version, where its states begin and end, its
    heartbeats, and what it answers."""
    lines = [_line(rule_id, tests, component.loggers) for rule_id, tests in _kinds(component) if tests]
    heartbeats = enumerate(component.heartbeats)
    return [*lines, *(_heartbeat(f"component:{component.name}{HEARTBEAT}", index, beat) for index, beat in heartbeats)]


def _kinds(component: Component) -> Iterator[tuple[str, Sequence[Test]]]:
    """Yield the rule ids of the lines of `component`, and the tests of each."""
    yield f"component:{component.name}{NAMES}", component.names
    yield f"component:{component.name}{VERSION}", component.version
    for state, phases in component.states.items():
        for number, phase in enumerate(phases):
            yield state_sign(component.name, state, number, "begins"), phase.begins
            yield state_sign(component.name, state, number, "ends"), phase.ends
    for kind, answer in component.answers.items():
        yield answer_sign(component.name, kind), answer.lines
        yield answer_sign(component.name, kind, is_gone=True), answer.gone


def _line(rule_id: str, tests: Sequence[Test], loggers: Sequence[str]) -> Detector:
    """Return the lines of one kind: of a component with loggers at the beginning of a message; a version anywhere."""
    if rule_id.endswith(VERSION) or ANSWER_SIGN.fullmatch(rule_id):
        loggers = ()
    groups = [(test.at_beginning() if loggers else test,) for test in tests]
    signs = _signs([test for group in groups for test in group])
    return Detector(rule_id, signs, lambda searched: from_loggers(_any_group(groups, searched), loggers), [groups])


def _heartbeat(rule_id: str, index: int, beat: Heartbeat) -> Detector:
    """Return a heartbeat line. It captures `beat`, the index among the component's heartbeats, and `every_s`, its interval in
    seconds."""
    captures: Captures = {"beat": index, "every_s": beat.every_s}
    holds = compile_check(beat.test)
    check: FieldCheck = lambda fields: captures if holds(fields) is not None else None  # noqa: E731
    return Detector(rule_id, beat.test.signs, lambda _searched: check, [[(beat.test,)]])


def _signs(tests: Sequence[Test]) -> Sequence[str]:
    """Return the signs of tests of which any holds; empty when one of them has none."""
    return [sign for test in tests for sign in test.signs] if all(test.signs for test in tests) else ()
