"""Compiles the conditions of detections into functions, so that the tree is walked once and not for every event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from engine.match.checks import Captures
from engine.model.expressions import UNKNOWN, Binary, Expression, NameExpression, Unary, evaluate
from engine.model.matches import Value

MatchCondition = Callable[[Set[str], Captures], bool]  # arguments: the names of the items that hold, and their captures


def condition_of(expression: Expression, items: Set[str]) -> MatchCondition:
    """Return the function that tells whether a condition over `items` and captures evaluates to True.

    A name that is both an item's and a capture's is the item's. Like `evaluate`, the function stops at the first side of `and`
    or `or` that decides.
    """
    match expression:
        case NameExpression(name) if name in items:
            return _truth(expression, items)
        case Unary("not") | Binary("and" | "or"):
            return _truth(expression, items)
    return lambda holding, captures: evaluate(expression, _names(holding, captures, items)) is True  # a number is not True


def _truth(expression: Expression, items: Set[str]) -> MatchCondition:
    """Return the function that tells whether a side of `and` or `or` counts as true: neither false nor unknown."""
    match expression:
        case NameExpression(name) if name in items:
            return lambda holding, _captures: name in holding
        case Unary("not", operand) if _of_items(operand, items):  # whether an item holds is never unknown
            negated = _truth(operand, items)
            return lambda holding, captures: not negated(holding, captures)
        case Binary("and" | "or" as op):
            return _chain(op, [_truth(side, items) for side in _sides(expression, op)])
    return lambda holding, captures: _counts(evaluate(expression, _names(holding, captures, items)))


def _names(holding: Set[str], captures: Captures, items: Set[str]) -> Mapping[str, Value]:
    return {**captures, **{name: name in holding for name in items}}


def _of_items(expression: Expression, items: Set[str]) -> bool:
    """Tell whether `expression` depends only on which items hold, not on captures."""
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

    def chain(holding: Set[str], captures: Captures) -> bool:
        for side in sides:
            if side(holding, captures) is decided_by:
                return decided_by
        return not decided_by

    return chain


def _sides(expression: Expression, op: str) -> list[Expression]:
    """Return the operands of a chain of the operator `op`, from left to right."""
    match expression:
        case Binary(operator, left, right) if operator == op:
            return [*_sides(left, op), *_sides(right, op)]
    return [expression]


def _counts(value: object) -> bool:
    return value is not UNKNOWN and bool(value)
