"""Expressions of conditions, templates and escalations: a small tree and its three-valued evaluation.

The parser is in `engine/dsl`; this module is what every stage needs to evaluate an expression. Names are looked up only in the
given environment, no attribute is read, and only the functions of FUNCTIONS are called.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct


class Unknown:
    """The value of anything that depends on a missing capture; neither true nor false."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
LANGUAGE = "in language"  # the name in an environment of the language of the text; absent: English
HELD_ITEMS = "held items"  # the name in an environment of the names of the items that held; no capture has a blank in its name

Scalar = str | int | float | bool
Result = Any  # Scalar | Sequence[Scalar] | Unknown: lists only as arguments of functions
Environment = Mapping[str, Result]


class Literal(Struct, frozen=True, tag=True):
    """A number, text or duration in seconds; `unit` is "s" when it was written as a duration."""

    value: Scalar
    unit: str = ""


class NameExpression(Struct, frozen=True, tag=True):
    """A capture or a context value, in a condition also a detection item; `x.all` and the like are single names here."""

    name: str


class ItemExpression(Struct, frozen=True, tag=True):
    """A detection item in an expression about an alert: true when the item held in any of its matches, else false."""

    name: str


class Unary(Struct, frozen=True, tag=True):
    """`not x` or `-x`."""

    op: str
    operand: Expression


class Binary(Struct, frozen=True, tag=True):
    """`x op y`, op one of: and or == != < <= > >= + - * / %."""

    op: str
    left: Expression
    right: Expression


class Call(Struct, frozen=True, tag=True):
    """`function(argument, ...)` with a function of FUNCTIONS."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | NameExpression | ItemExpression | Unary | Binary | Call


MOST_REPLICAS = 3  # that a reassignment gives a partition, where there are more brokers
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")  # org.apache.kafka.common.internals.Topic


def ceil_pow2(number: float) -> int:
    """Return the smallest power of two that is not below `number` (1 for anything up to 1)."""
    return 1 << max(0, math.ceil(number) - 1).bit_length()


def round_up(number: float, step: float) -> int:
    """Return the smallest multiple of `step` that is not below `number`."""
    return math.ceil(number / step) * int(step)


def reassignment(topics: Any, partitions: Any, brokers: Any) -> str:
    """Return the JSON that kafka-reassign-partitions takes: every one of `partitions` on all of `brokers`, or, where these are
    more than three or lack the present replica, on three with the present replica first.

    `topics` and `partitions` are one value or a list, `brokers` a list or comma-separated text. A partition is a number of the
    only topic, or `topic-number@broker` with the present replica. Raises ValueError for numbers of several topics, and for a
    name that is invalid for a topic of Kafka.
    """
    ids = [int(b) for b in (brokers.split(",") if isinstance(brokers, str) else brokers)]
    listed = partitions if isinstance(partitions, list | tuple) else [partitions]
    if all("@" in str(partition) for partition in listed):
        rows = [_row(str(partition), ids) for partition in listed]
    else:
        [topic] = topics if isinstance(topics, list | tuple) else [topics]
        rows = [{"topic": topic, "partition": p, "replicas": ids} for p in sorted({int(p) for p in listed})]
    if invalid := [row["topic"] for row in rows if not _TOPIC.fullmatch(str(row["topic"]))]:
        raise ValueError(invalid)
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"))


def _row(partition: str, ids: list[int]) -> dict[str, Any]:
    """Return a partition of a reassignment, given as `topic-number@broker`."""
    name, _, present = partition.rpartition("@")
    topic, _, number = name.rpartition("-")
    if len(ids) <= MOST_REPLICAS and int(present) in ids:
        return {"topic": topic, "partition": int(number), "replicas": ids}
    others = [id_ for id_ in ids if id_ != int(present)]
    first = int(number) % len(others)  # so that partitions do not share all their brokers
    chosen = [*others[first:], *others[:first]][: MOST_REPLICAS - 1]
    return {"topic": topic, "partition": int(number), "replicas": [int(present), *chosen]}


def without(names: Any, others: Any) -> str:
    """Return the names of the comma-separated text `names` that `others` does not have, in their order, comma-separated."""
    excluded = str(others).split(",")
    return ",".join(name for name in str(names).split(",") if name not in excluded)


def known(value: Result) -> bool:
    """Return whether `value` is known: the only function that returns a value for a missing argument."""
    return value is not UNKNOWN


FUNCTIONS: Mapping[str, Callable[..., Result]] = {
    "ceil_pow2": ceil_pow2,
    "round_up": round_up,
    "known": known,
    "min": min,
    "max": max,
    "len": len,
    "lower": lambda text: str(text).lower(),
    "reassignment": reassignment,
    "without": without,
}

_UNARY: Mapping[str, Callable[[Any], Any]] = {"not": lambda a: not a, "-": lambda a: -_number(a)}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: _number(a) + _number(b),
    "-": lambda a, b: _number(a) - _number(b),
    "*": lambda a, b: _number(a) * _number(b),
    "/": lambda a, b: _number(a) / _number(b),
    "%": lambda a, b: _number(a) % _number(b),
}


def evaluate(expression: Expression, environment: Environment) -> Result:
    """Return the value of `expression`, or UNKNOWN when it depends on a missing name or on an operation without a result.

    `and` is false when either side is false even if the other is unknown, `or` true likewise; `not unknown` is unknown.
    """
    match expression:
        case Literal(value):
            return value
        case NameExpression(name):
            return environment.get(name, UNKNOWN)
        case ItemExpression(name):
            return name in environment.get(HELD_ITEMS, ())
        case Unary(op, operand):
            return _apply(_UNARY[op], [evaluate(operand, environment)])
        case Binary("and" | "or" as op, left, right):
            return _connect(op, evaluate(left, environment), right, environment)
        case Binary(op, left, right):
            return _apply(_COMPARE.get(op) or _ARITHMETIC[op], [evaluate(left, environment), evaluate(right, environment)])
        case Call("known", (argument,)):
            return known(evaluate(argument, environment))
        case Call(function, arguments):
            return _apply(FUNCTIONS[function], [evaluate(a, environment) for a in arguments])


def holds(expression: Expression, environment: Environment) -> bool:
    """Return whether `expression` is true when a missing value equals nothing, is neither larger nor smaller than anything, and
    differs from everything: of `error == 'a'` and `not error == 'a'` exactly one holds."""
    match expression:
        case Unary("not", operand):
            return not holds(operand, environment)
        case Binary("and", left, right):
            return holds(left, environment) and holds(right, environment)
        case Binary("or", left, right):
            return holds(left, environment) or holds(right, environment)
        case Binary("!=", left, right):
            return not holds(Binary("==", left, right), environment)
    value = evaluate(expression, environment)
    return value is not UNKNOWN and bool(value)


@lru_cache(maxsize=4096)
def names(expression: Expression) -> frozenset[str]:
    """Return every name that `expression` looks up in its environment; items (ItemExpression) are not among them."""
    match expression:
        case NameExpression(name):
            return frozenset((name,))
        case Unary(_, operand):
            return names(operand)
        case Binary(_, left, right):
            return names(left) | names(right)
        case Call(_, arguments):
            return frozenset().union(*(names(a) for a in arguments))
    return frozenset()


def items_in(expression: Expression) -> frozenset[str]:
    """Return the names of the items (ItemExpression) that `expression` depends on."""
    match expression:
        case ItemExpression(name):
            return frozenset((name,))
        case Unary(_, operand):
            return items_in(operand)
        case Binary(_, left, right):
            return items_in(left) | items_in(right)
        case Call(_, arguments):
            return frozenset().union(*(items_in(a) for a in arguments))
    return frozenset()


def _number(value: Any) -> int | float:
    if isinstance(value, (int, float)):
        return value
    raise TypeError("arithmetic is on numbers only")  # text times a number could ask for gigabytes


def _connect(op: str, left: Result, right: Expression, environment: Environment) -> Result:
    decided_by = op == "or"
    if left is not UNKNOWN and bool(left) is decided_by:
        return decided_by
    right_value = evaluate(right, environment)
    if right_value is not UNKNOWN and bool(right_value) is decided_by:
        return decided_by
    return UNKNOWN if UNKNOWN in (left, right_value) else (not decided_by)


def _apply(function: Callable[..., Result], arguments: list[Result]) -> Result:
    if any(a is UNKNOWN for a in arguments):
        return UNKNOWN
    try:
        return function(*arguments)
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN
