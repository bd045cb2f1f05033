"""Parse the expression language of conditions, escalations and `{= }` holes into engine.model.expressions, with pyparsing.

    or  and  not  == != < <= > >=  + -  * / %  -x  ( )  name  name.max  12  3.5  10m  1MiB  'text'  true  f(x, y)
    1 of x_*   any of them   all of x_*        (quantifiers over detection items)

A duration is its number of seconds, a size its number of bytes. Chains of `and` and `or` become balanced trees. No eval, no
attribute access.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache, reduce
from typing import Any

from msgspec import Struct
from pyparsing import (
    Forward,
    Opt,
    ParseBaseException,
    ParserElement,
    ParseResults,
    Regex,
    StringEnd,
    Suppress,
    ZeroOrMore,
)

from engine.dsl.codes import Code
from engine.dsl.quantities import MAX_DIGITS, UNIT_S
from engine.dsl.units import DURATION
from engine.model.expressions import FUNCTIONS, Binary, Call, Expression, Literal, NameExpression, Unary

MAX_DEPTH = 32
MAX_LENGTH = 4096
MAX_FRAMES = 64 * MAX_DEPTH  # of pyparsing's, which calls itself some 45 times for each level of parentheses
SIZES = {unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)}
ARITY = {
    "ceil_pow2": (1, 1),
    "round_up": (2, 2),
    "known": (1, 1),
    "min": (1, 16),
    "max": (1, 16),
    "len": (1, 1),
    "lower": (1, 1),
    "reassignment": (3, 3),
}


class ExpressionError(Exception):
    """An invalid expression: code, message, offset and length of the wrong part in characters, and help."""

    def __init__(self, code: Code, message: str, offset: int = 0, length: int = 1, help: str = "") -> None:
        self.code, self.message, self.offset, self.length, self.help = code, message, offset, length, help
        super().__init__(message)


class _Quantifier(Struct, frozen=True):
    """A quantifier such as `1 of x_*`, before it is replaced by the items that match `glob`; `every`: `all of`."""

    every: bool
    glob: str
    offset: int


def parse(text: str, items: Sequence[str] = ()) -> Expression:
    """Parse `text`; `items` are the detection items that quantifiers range over.

    Raises ExpressionError with the offset in `text`. The caller checks that names exist.
    """
    _check_size(text)
    try:
        tree = _parsed(text)
    except ParseBaseException as error:
        raise _syntax_error(text, error.loc) from None
    if _depth(tree) > MAX_DEPTH:
        raise ExpressionError(
            Code.EXPRESSION_TOO_DEEP, f"nested deeper than {MAX_DEPTH} levels", help="split it into several items"
        )
    return _resolve(tree, items, text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    """Return the tree of `text` with quantifiers unresolved. Cached: steps and cases of a rule repeat their conditions."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + MAX_FRAMES)
    try:
        return _grammar().parse_string(text)[0]
    finally:
        sys.setrecursionlimit(limit)


def offset_of(text: str, name: str) -> int:
    """Return the offset of the first occurrence of `name` as a whole word in `text`; 0 when there is none."""
    word = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text)
    return word.start() if word else 0


def _check_size(text: str) -> None:
    if not text.strip():
        raise ExpressionError(Code.EXPRESSION_SYNTAX, "the expression is empty")
    if len(text) > MAX_LENGTH:
        raise ExpressionError(Code.EXPRESSION_SYNTAX, f"the expression is longer than {MAX_LENGTH} characters")
    level = 0
    for index, char in enumerate(text):
        level += {"(": 1, ")": -1}.get(char, 0)
        if level > MAX_DEPTH:
            raise ExpressionError(Code.EXPRESSION_TOO_DEEP, f"nested deeper than {MAX_DEPTH} levels", index)
    for number in re.finditer(r"[0-9]+", text):
        if len(number[0]) > MAX_DIGITS:
            message = f"the number has {len(number[0])} digits; the limit is {MAX_DIGITS}"
            raise ExpressionError(Code.NUMBER_TOO_LONG, message, number.start(), len(number[0]))


def _syntax_error(text: str, offset: int) -> ExpressionError:
    token = re.compile(r"\s*(\w+|\S)").match(text, offset)
    if token is None:
        return ExpressionError(
            Code.EXPRESSION_SYNTAX, "the expression ends too early", max(0, len(text.rstrip()) - 1), help=_SYNTAX
        )
    message = f"`{token[1]}` is not expected here"
    return ExpressionError(Code.EXPRESSION_SYNTAX, message, token.start(1), len(token[1]), _SYNTAX)


_SYNTAX = "write for example `too_large and not retried`, `size > 1048576`, `1 of sent_*`"


_WORD = r"(?!(?:and|or|not|of|true|false)\b)[a-z_][a-z0-9_]*"
_OR, _AND, _NOT = (Regex(rf"{word}(?!\w)") for word in ("or", "and", "not"))
_QUANTIFIER = Regex(r"(?P<how>1|any|all)\s+of\s+(?P<glob>them\b|[a-z_][a-z0-9_]*\*?)")
_COMPARISON = Regex(r"[=!<>]=|[<>]")
_SUM, _PRODUCT, _MINUS = Regex(r"[+-]"), Regex(r"[*/%]"), Regex("-")
_CALLED = Regex(rf"{_WORD}(?=\s*\()")
_NAME = Regex(rf"{_WORD}(?:\.(?:all|min|max|first|last|sum)\b)?(?![\w.])")
_NUMBER = Regex(r"[0-9]+(?:\.[0-9]+)?(?:(?:ms|[smhd]|[KMGT]iB)\b)?(?![\w.])")
_STRING = Regex(r"'[^'\n]*'|\"[^\"\n]*\"")
_BOOLEAN = Regex(r"(?:true|false)\b(?!\s*\()")
_OPEN, _CLOSE, _COMMA = (Suppress(char) for char in "(),")


@cache
def _grammar() -> ParserElement:
    """Return the parser. It never backtracks past an operator or a parenthesis (`-`), so its time is linear in the text and a
    syntax error has its own offset."""
    disjunction = Forward()
    arguments = _OPEN - (_CLOSE | (disjunction - ZeroOrMore(_COMMA - disjunction) - _CLOSE))
    call = (_CALLED - arguments).set_parse_action(lambda parts: Call(parts[0], tuple(parts[1:])))
    atom = (
        call
        | _NUMBER.copy().set_parse_action(lambda parts: _number(parts[0]))
        | _STRING.copy().set_parse_action(lambda parts: Literal(parts[0][1:-1]))
        | _BOOLEAN.copy().set_parse_action(lambda parts: Literal(parts[0] == "true"))
        | _NAME.copy().set_parse_action(lambda parts: NameExpression(parts[0]))
        | (_OPEN - disjunction - _CLOSE)
    )
    signed = (ZeroOrMore(_MINUS) + atom).set_parse_action(_prefixed)
    product = (signed + ZeroOrMore(_PRODUCT - signed)).set_parse_action(_left_to_right)
    total = (product + ZeroOrMore(_SUM - product)).set_parse_action(_left_to_right)
    comparison = (total + Opt(_COMPARISON - total)).set_parse_action(_left_to_right)
    quantifier = _QUANTIFIER.copy().set_parse_action(_quantifier)
    negation = (ZeroOrMore(_NOT) + (quantifier | comparison)).set_parse_action(_prefixed)
    conjunction = (negation + ZeroOrMore(_AND - negation)).set_parse_action(_balanced)
    disjunction <<= (conjunction + ZeroOrMore(_OR - conjunction)).set_parse_action(_balanced)
    return disjunction + StringEnd()


def _quantifier(_text: str, offset: int, parts: ParseResults) -> _Quantifier:
    return _Quantifier(parts["how"] == "all", str(parts["glob"]), offset)


def _prefixed(parts: ParseResults) -> Any:
    *operators, operand = parts
    return reduce(lambda inner, operator: Unary(operator, inner), reversed(operators), operand)


def _left_to_right(parts: ParseResults) -> Any:
    first, *rest = parts
    return reduce(lambda left, pair: Binary(pair[0], left, pair[1]), zip(rest[0::2], rest[1::2], strict=True), first)


def _balanced(parts: ParseResults) -> Any:
    return join(parts[1], parts[0::2]) if len(parts) > 1 else parts[0]


def _number(text: str) -> Literal:
    unit = re.search(r"[A-Za-z]+$", text)
    if unit and unit[0] in SIZES:
        return Literal(int(float(text[: unit.start()]) * SIZES[unit[0]]))
    if unit:
        return Literal(round(float(text[: unit.start()]) * UNIT_S[unit[0]], 6), DURATION)
    return Literal(float(text) if "." in text else int(text))


def join(operator: str, operands: Sequence[Any]) -> Any:
    """Return `operands` (at least one) joined by `and` or `or` as a balanced tree."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return Binary(operator, join(operator, operands[:middle]), join(operator, operands[middle:]))


def _resolve(tree: Any, items: Sequence[str], text: str) -> Expression:
    """Return `tree` with quantifiers replaced by their items. Raises ExpressionError for these and for wrong calls."""
    match tree:
        case _Quantifier(every, glob, offset):
            matching = [item for item in items if glob == "them" or fnmatchcase(item, glob)]
            if not matching:
                raise ExpressionError(Code.NO_SUCH_ITEMS, f"no detection item is called `{glob}`", offset)
            joined: Expression = join("and" if every else "or", [NameExpression(item) for item in matching])
            return joined
        case Unary(op, operand):
            return Unary(op, _resolve(operand, items, text))
        case Binary(op, left, right):
            return Binary(op, _resolve(left, items, text), _resolve(right, items, text))
        case Call(function, arguments):
            _check_call(function, len(arguments), text)
            return Call(function, tuple(_resolve(argument, items, text) for argument in arguments))
    leaf: Expression = tree
    return leaf


def _check_call(function: str, argument_count: int, text: str) -> None:
    if function not in FUNCTIONS:
        message, help_line = f"there is no function `{function}`", f"known: {', '.join(FUNCTIONS)}"
        raise ExpressionError(Code.UNKNOWN_FUNCTION, message, offset_of(text, function), len(function), help_line)
    low, high = ARITY[function]
    if not low <= argument_count <= high:
        expected = str(low) if low == high else f"{low} to {high}"
        message = f"`{function}` takes {expected} arguments, not {argument_count}"
        raise ExpressionError(Code.WRONG_ARGUMENTS, message, offset_of(text, function), len(function))


def _depth(tree: Any) -> int:
    """Return the depth of `tree`. Iterative, as a text may nest deeper than the stack allows."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in _children(node)]
    return depth


def _children(expression: Any) -> Iterator[Any]:
    match expression:
        case Unary(_, operand):
            yield operand
        case Binary(_, left, right):
            yield from (left, right)
        case Call(_, arguments):
            yield from arguments
