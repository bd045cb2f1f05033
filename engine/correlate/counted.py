"""What correlations are made of: the rules they count, and the condition over what a window measures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from engine.correlate.measure import Counted
from engine.correlate.windows import CountCondition
from engine.model.expressions import Expression, evaluate
from engine.model.rules import Correlation, Plan, Signature

_REMEMBERED = 4096


def counted(rules: Iterable[str], plan: Plan) -> tuple[Counted, ...]:
    """Return what is counted for `rules`, in the order of the plan; an alert of a correlation counts as one occurrence."""
    wanted = frozenset(rules)
    every: tuple[Signature | Correlation, ...] = (*plan.signatures, *plan.correlations)
    return tuple(counted_as(each) for each in every if each.rule.id in wanted)


def counted_as(each: Signature | Correlation) -> Counted:
    """Return what one rule counts as."""
    if isinstance(each, Correlation):
        return Counted(each.rule.id)
    rule = each.rule
    return Counted(rule.id, each.collapse_s, each.distinct, rule.component, rule.versions)


def condition(correlation: Correlation, least: float = 1.0) -> CountCondition:
    """Return the condition of `correlation` as a function of `count`; without one, at least `least` makes it hold."""
    expression = correlation.condition
    if expression is None:
        return lambda count: count >= least
    return _remembered(expression)


def _remembered(expression: Expression) -> CountCondition:
    """Return the condition of an expression, for windows measure few different numbers very often."""

    @lru_cache(maxsize=_REMEMBERED)
    def holds(count: float) -> bool:
        return evaluate(expression, {"count": count}) is True

    return holds
