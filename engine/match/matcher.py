"""The matcher: a plan's signatures and component lines compiled once, then applied to one event at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.match.checks import NOTHING, Captures, Check, all_of, any_of, compile_check
from engine.match.dumps import dump_check, dump_signs
from engine.match.fields import Fields
from engine.match.gate import Gate, Kept, Screen
from engine.match.redact import cut, redact, redact_captures
from engine.match.signs import Signs, signs_of, test_signs
from engine.model.configs import settings_of_plan
from engine.model.expressions import Expression, evaluate, names
from engine.model.matches import Match, Value
from engine.model.records import LogEvent
from engine.model.rules import Component, Heartbeat, Item, Plan, Signature, Test

_NAMES = "/names"


@dataclass(frozen=True, slots=True)
class _Sought:
    """Something looked for in every event: a rule id, how to tell, and the signs without which it need not be tried."""

    rule_id: str
    check: Check
    signs: Signs


class Matcher:
    """Applies every signature of a plan to events. Holds no state between events: safe to share and to build anywhere."""

    def __init__(self, plan: Plan) -> None:
        self._sought = tuple(_sought(plan))
        self._gate = Gate([each.signs for each in self._sought])

    def screen(self, also: Iterable[str] = (), kept: Kept | None = None) -> Screen:
        """Return what finds, in raw bytes, the lines that may bear a match, or one of the expressions `also`.

        Args:
            kept: where what takes long to compile may lie ready.
        """
        named = [each.signs for each in self._sought if each.rule_id.endswith(_NAMES)]
        counted = [each.signs for each in self._sought if not each.rule_id.endswith(_NAMES)]
        return Screen([*counted, *(Signs((regex,)) for regex in also)], named, kept)

    def match_event(self, event: LogEvent) -> list[Match]:
        """Return the matches of `event`, at most one a rule, in the order of the plan; text and captures are redacted."""
        fields = Fields(event)
        possible = [self._sought[number] for number in sorted(self._gate.possible(fields.text))]
        hits = [(each.rule_id, found) for each in possible if (found := each.check(fields)) is not None]
        return _matches(event, hits) if hits else []


def _matches(event: LogEvent, hits: Sequence[tuple[str, Captures]]) -> list[Match]:
    redacted = redact(event.text)
    evidence = cut(redacted)
    return [
        Match(
            rule_id=rule_id,
            event_id=event.event_id,
            source_id=event.source_id,
            number=event.number,
            at=event.at,
            dated=event.timestamp is not None,
            captures=redact_captures(captures, event.text, redacted),
            labels=event.labels,
            text=evidence,
        )
        for rule_id, captures in hits
    ]


def _sought(plan: Plan) -> list[_Sought]:
    lines = [line for component in plan.components for line in _component_lines(component)]
    dumps = [
        _Sought(f"config:{kind}", dump_check(kind, names), dump_signs(kind)) for kind, names in settings_of_plan(plan).items()
    ]
    return [*lines, *dumps, *(_signature(signature) for signature in plan.signatures)]


def _signature(signature: Signature) -> _Sought:
    condition, items = signature.condition, signature.items
    decisive = names(condition)
    deciding = tuple((item.name, _item_check(item)) for item in items if item.name in decisive)
    adding = tuple(_item_check(item) for item in items if item.name not in decisive)
    check = _excepting(signature, _condition_check(condition, deciding, adding))
    return _Sought(signature.rule.id, check, signs_of(items, condition))


def _excepting(signature: Signature, check: Check) -> Check:
    """Return `check` without the events that the signature's exceptions leave out; what is unknown is no exception."""
    unless = signature.unless
    excepted = _item_check(signature.exceptions) if signature.exceptions is not None else None
    if unless is None and excepted is None:
        return check

    def checked(fields: Fields) -> Captures | None:
        found = check(fields)
        if found is None or (excepted is not None and excepted(fields) is not None):
            return None
        return None if unless is not None and evaluate(unless, found) is True else found

    return checked


def _condition_check(condition: Expression, deciding: Sequence[tuple[str, Check]], adding: Sequence[Check]) -> Check:
    """Return the check of a whole detection: captures of the items that decide come before those of the others."""

    def check(fields: Fields) -> Captures | None:
        captures: dict[str, Value] = {}
        environment: dict[str, Value | bool] = {}
        for name, item in deciding:
            found = item(fields)
            environment[name] = found is not None
            captures = {**(found or NOTHING), **captures}
        if evaluate(condition, {**captures, **environment}) is not True:
            return None
        for item in adding:
            captures = {**(item(fields) or NOTHING), **captures}
        return captures

    return check


def _item_check(item: Item) -> Check:
    return any_of([_group_check(tests) for tests in item.any_of])


def _group_check(tests: Sequence[Test]) -> Check:
    return all_of([compile_check(test) for test in tests])


def _component_lines(component: Component) -> list[_Sought]:
    """Return the lines in which a process of `component` says who it is, what version, and that it lives (DESIGN 4.1)."""
    lines = [_Sought(f"component:{component.name}/{kind}", *_any(tests)) for kind, tests in _kinds(component) if tests]
    return [*lines, *(_heartbeat(component, index, beat) for index, beat in enumerate(component.heartbeats))]


def _kinds(component: Component) -> tuple[tuple[str, tuple[Test, ...]], ...]:
    return (("names", component.names), ("version", component.version))


def _any(tests: Sequence[Test]) -> tuple[Check, Signs]:
    return any_of([compile_check(test) for test in tests]), test_signs((test,) for test in tests)


def _heartbeat(component: Component, index: int, beat: Heartbeat) -> _Sought:
    """Return a heartbeat line; `beat` tells which of the component's heartbeats it is, `every_s` its cadence."""
    said: Captures = {"beat": index, "every_s": beat.every_s}
    holds = compile_check(beat.test)
    check: Check = lambda fields: said if holds(fields) is not None else None  # noqa: E731
    return _Sought(f"component:{component.name}/heartbeat", check, test_signs([(beat.test,)]))
