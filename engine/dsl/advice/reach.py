"""A correlation that can never hold warns nobody."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.model.expressions import Binary, Call, Expression, Literal, Unary, evaluate
from engine.model.rules import Absence, Correlation, Plan


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a count that cannot be reached within the time span, and an absence that nothing could arm."""
    found = next((each for each in pack.plan.correlations if each.rule.id == draft.id), None)
    if found is None:
        return
    if found.absence is not None and _never_armed(found.absence, pack.plan):
        message = f"`{found.absence.of}` has no heartbeats, so its silence is never judged"
        at = draft.document.find(["correlation", "of"])
        report.add(Code.UNREACHABLE, at, message, "give the component heartbeats, or write a time span, or add `sooner`")
    if found.type in ("event_count", "value_count") and found.condition is not None:
        most = _most(found, pack.plan)
        if not any(evaluate(found.condition, {"count": count}) is True for count in _candidates(found.condition, most)):
            at = draft.document.find(["correlation", "condition"])
            why = f"there are at most {most} occurrences in the time span" if math.isfinite(most) else "it contradicts itself"
            help_line = "a longer `timespan`, a shorter `collapse` of the counted rules, or a smaller count"
            report.add(Code.UNREACHABLE, at, f"no count fulfils this condition: {why}", help_line)


def _never_armed(given: Absence, plan: Plan) -> bool:
    component = next((each for each in plan.components if each.name == given.of), None)
    return given.timespan_s == 0 and given.sooner is None and component is not None and not component.heartbeats


def _most(correlation: Correlation, plan: Plan) -> float:
    """Return how many occurrences the window can hold: `collapse` keeps those of one entity apart."""
    collapse = {each.rule.id: each.collapse_s for each in plan.signatures}
    counted = [collapse.get(id_, 0.0) for id_ in correlation.rules]
    if not all(counted):
        return math.inf
    return sum(math.floor(correlation.timespan_s / each) + 1 for each in counted)


def _candidates(condition: Expression, most: float) -> Iterator[int]:
    """Yield counts from 1 to `most` that tell whether `condition` can hold: on, below and above each number it has."""
    around = {1, *(int(number) + step for number in _numbers(condition) for step in (-1, 0, 1))}
    yield from (count for count in sorted(around) if 1 <= count <= most)


def _numbers(expression: Expression) -> Iterator[float]:
    match expression:
        case Literal(int() | float() as value):
            yield value
        case Unary(_, operand):
            yield from _numbers(operand)
        case Binary(_, left, right):
            yield from _numbers(left)
            yield from _numbers(right)
        case Call(_, arguments):
            for argument in arguments:
                yield from _numbers(argument)
