"""Units in expressions: a duration that is compared with a capture of milliseconds is converted to milliseconds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.model.expressions import Binary, Call, Expression, Literal, NameExpression, Unary

DURATION = "s"
_ALIKE = frozenset(("==", "!=", "<", "<=", ">", ">=", "+", "-", "%"))  # both sides have the same unit
_SAME = frozenset(("min", "max", "round_up"))


def in_units(expression: Expression, types: Mapping[str, str]) -> Expression:
    """Return `expression` with durations converted to milliseconds where they are compared with or added to `ms` captures."""
    match expression:
        case Binary(op, left, right):
            sides = (in_units(left, types), in_units(right, types))
            return Binary(op, *(_together(sides, types) if op in _ALIKE else sides))
        case Call(function, arguments):
            arguments_in_units = tuple(in_units(argument, types) for argument in arguments)
            return Call(function, _together(arguments_in_units, types) if function in _SAME else arguments_in_units)
        case Unary(op, operand):
            return Unary(op, in_units(operand, types))
    return expression


def _together(sides: tuple[Expression, ...], types: Mapping[str, str]) -> tuple[Expression, ...]:
    return tuple(map(_as_ms, sides)) if any(_is_ms(side, types) for side in sides) else sides


def _is_ms(expression: Expression, types: Mapping[str, str]) -> bool:
    """Return whether a value is in milliseconds: an `ms` capture, or an expression of one that keeps its unit."""
    match expression:
        case NameExpression(name):
            return types.get(name.partition(".")[0]) == "ms"
        case Binary("+" | "-" | "%", left, right):
            return _is_ms(left, types) or _is_ms(right, types)
        case Unary("-", operand):
            return _is_ms(operand, types)
        case Call(function, arguments):
            return function in _SAME and any(_is_ms(argument, types) for argument in arguments)
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
