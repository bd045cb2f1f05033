"""Detection items in expressions: where a name means an item, and where it means a capture or another value."""

from __future__ import annotations

from collections.abc import Set

from engine.model.expressions import Binary, Call, Expression, ItemExpression, NameExpression, Unary


def operands(expression: Expression, is_operand: bool = False) -> frozenset[str]:
    """Return the names that are compared, calculated with or passed to a function."""
    match expression:
        case NameExpression(name):
            return frozenset((name,)) if is_operand else frozenset()
        case Unary(op, operand):
            return operands(operand, is_operand or op == "-")
        case Binary(op, left, right):
            below = is_operand or op not in ("and", "or")
            return operands(left, below) | operands(right, below)
        case Call(_, arguments):
            return frozenset(name for argument in arguments for name in operands(argument, True))
    return frozenset()


def with_items(expression: Expression, items: Set[str]) -> Expression:
    """Return `expression` with each name of `items` as an item where it is used as a condition by itself.

    A name that is compared, calculated with or passed to a function is never an item's.
    """
    match expression:
        case NameExpression(name) if name in items:
            return ItemExpression(name)
        case Unary("not", operand):
            return Unary("not", with_items(operand, items))
        case Binary("and" | "or" as op, left, right):
            return Binary(op, with_items(left, items), with_items(right, items))
    return expression
