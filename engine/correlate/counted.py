"""The parts of correlations: the rules that they count, and the condition on the measure of a window."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from engine.correlate.measure import Counted
from engine.correlate.windows import CountCondition
from engine.model.expressions import Expression, evaluate
from engine.model.rules import Correlation, Plan, Signature

_CACHED = 4096


def counted(rule_ids: Iterable[str], plan: Plan) -> tuple[Counted, ...]:
    """Return how the rules `rule_ids` are counted, in the order of the plan; an alert of a correlation counts as one."""
    wanted = frozenset(rule_ids)
    rules: tuple[Signature | Correlation, ...] = (*plan.signatures, *plan.correlations)
    return tuple(counted_as(rule) for rule in rules if rule.rule.id in wanted)


def counted_as(rule: Signature | Correlation) -> Counted:
    """Return how the matches of a signature, or the alerts of a correlation, are counted."""
    if isinstance(rule, Correlation):
        return Counted(rule.rule.id)
    return Counted(rule.rule.id, rule.collapse_s, rule.distinct, rule.rule.component, rule.rule.versions, rule.rule.not_during)


def condition(correlation: Correlation) -> CountCondition:
    """Return the condition of `correlation` as a function of `count`; without one, any count from 1 on makes it hold."""
    expression = correlation.condition
    return (lambda count: count >= 1) if expression is None else _cached(expression)


def _cached(expression: Expression) -> CountCondition:
    """Return an expression as a cached condition, as windows measure few different numbers very often."""

    @lru_cache(maxsize=_CACHED)
    def holds(count: float) -> bool:
        return evaluate(expression, {"count": count}) is True

    return holds
