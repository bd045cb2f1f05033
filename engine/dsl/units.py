"""Units in expressions: a duration beside a capture of milliseconds is meant in milliseconds, as its reader takes it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.model.expressions import Binary, Call, Expression, Literal, NameExpression, Unary

DURATION = "s"
_ALIKE = frozenset(("==", "!=", "<", "<=", ">", ">=", "+", "-", "%"))  # both sides have one unit
_SAME = frozenset(("min", "max", "round_up"))


def in_units(expression: Expression, types: Mapping[str, str]) -> Expression:
    """Return `expression` with the durations that are compared with, or added to, captures of type ms in milliseconds."""
    match expression:
        case Binary(op, left, right):
            sides = (in_units(left, types), in_units(right, types))
            return Binary(op, *(_together(sides, types) if op in _ALIKE else sides))
        case Call(function, arguments):
            inner = tuple(in_units(each, types) for each in arguments)
            return Call(function, _together(inner, types) if function in _SAME else inner)
        case Unary(op, operand):
            return Unary(op, in_units(operand, types))
    return expression


def _together(sides: tuple[Expression, ...], types: Mapping[str, str]) -> tuple[Expression, ...]:
    return tuple(map(_as_ms, sides)) if any(_is_ms(side, types) for side in sides) else sides


def _is_ms(expression: Expression, types: Mapping[str, str]) -> bool:
    """Return whether a value is a number of milliseconds: a capture, or what is made of it without changing its unit."""
    match expression:
        case NameExpression(name):
            return types.get(name.partition(".")[0]) == "ms"
        case Binary("+" | "-" | "%", left, right):
            return _is_ms(left, types) or _is_ms(right, types)
        case Unary("-", operand):
            return _is_ms(operand, types)
        case Call(function, arguments):
            return function in _SAME and any(_is_ms(each, types) for each in arguments)
    return False


def _as_ms(expression: Expression) -> Expression:
    match expression:
        case Literal(float() | int() as seconds, unit) if unit == DURATION:
            return replace(expression, value=seconds * 1000, unit="")
        case Unary("-", operand):
            return Unary("-", _as_ms(operand))
        case Binary("+" | "-" as op, left, right):
            return Binary(op, _as_ms(left), _as_ms(right))
    return expression
