"""event_count: a number of occurrences of some rules in a window. A signature by itself is one that needs a single one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from engine.correlate.counts import Counted, EventCount
from engine.correlate.logic import Logic
from engine.model.expressions import Expression, evaluate
from engine.model.rules import Correlation, Plan, Signature

TYPE = "event_count"


def logic(correlation: Correlation, plan: Plan) -> Logic:
    """Return the logic of a correlation of this type."""
    counted = tuple(_counted(signature) for signature in plan.signatures if signature.rule.id in correlation.rules)
    condition = correlation.condition

    @lru_cache(maxsize=4096)
    def holds(count: int) -> bool:
        return count >= 1 if condition is None else _holds(condition, {"count": count})

    return EventCount(correlation.rule, counted, holds, correlation.timespan_s)


def bare(signature: Signature) -> Logic:
    """Return the logic under which a signature is an alert by itself: any occurrence, over when its `clear` says so."""
    return EventCount(signature.rule, (_counted(signature),), lambda count: count >= 1, signature.rule.clear.in_s or 3600.0)


def _counted(signature: Signature) -> Counted:
    rule = signature.rule
    return Counted(rule.id, signature.collapse_s, signature.distinct, rule.component, rule.versions)


def _holds(condition: Expression, environment: dict[str, Any]) -> bool:
    return evaluate(condition, environment) is True
