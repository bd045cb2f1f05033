"""Conditions of detections as functions of what their items answer: the tree is walked once, not for every event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from engine.match.checks import Captures
from engine.model.expressions import UNKNOWN, Binary, Expression, NameExpression, Unary, evaluate
from engine.model.matches import Value

MatchCondition = Callable[[Set[str], Captures], bool]  # which items hold, and what they capture


def condition_of(expression: Expression, items: Set[str]) -> MatchCondition:
    """Return the function that tells whether a condition over `items` and captures evaluates to True; an item's name wins.

    It stops where `evaluate` would, at the first side that decides.
    """
    match expression:
        case NameExpression(name) if name in items:
            return _truth(expression, items)
        case Unary("not") | Binary("and" | "or"):
            return _truth(expression, items)
    return lambda held, captures: evaluate(expression, _names(held, captures, items)) is True  # a number is no answer


def _truth(expression: Expression, items: Set[str]) -> MatchCondition:
    """Return the function that tells whether a side of `and` or `or` counts as true: neither false nor unknown."""
    match expression:
        case NameExpression(name) if name in items:
            return lambda held, _captures: name in held
        case Unary("not", operand) if _of_items(operand, items):  # which are never unknown
            negated = _truth(operand, items)
            return lambda held, captures: not negated(held, captures)
        case Binary("and" | "or" as op):
            return _chain(op, [_truth(side, items) for side in _sides(expression, op)])
    return lambda held, captures: _counts(evaluate(expression, _names(held, captures, items)))


def _names(held: Set[str], captures: Captures, items: Set[str]) -> Mapping[str, Value]:
    return {**captures, **{name: name in held for name in items}}


def _of_items(expression: Expression, items: Set[str]) -> bool:
    """Tell whether `expression` asks of nothing but whether items hold."""
    match expression:
        case NameExpression(name):
            return name in items
        case Unary("not", operand):
            return _of_items(operand, items)
        case Binary("and" | "or", left, right):
            return _of_items(left, items) and _of_items(right, items)
    return False


def _chain(op: str, sides: list[MatchCondition]) -> MatchCondition:
    decided_by = op == "or"

    def chain(held: Set[str], captures: Captures) -> bool:
        for side in sides:
            if side(held, captures) is decided_by:
                return decided_by
        return not decided_by

    return chain


def _sides(expression: Expression, op: str) -> list[Expression]:
    """Return what a chain of one operator joins, from left to right."""
    match expression:
        case Binary(found, left, right) if found == op:
            return [*_sides(left, op), *_sides(right, op)]
    return [expression]


def _counts(value: object) -> bool:
    return value is not UNKNOWN and bool(value)
