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
    ParseBaseException,
    ParseFatalException,
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
    "without": (2, 2),
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
_LOGICAL = Regex(r"(?:and|or)(?!\w)")
_COMPARISON = frozenset(("==", "!=", "<=", ">=", "<", ">"))
_ARITHMETIC = Regex(r"[=!<>]=|[<>]|[+*/%-]")
_RANKS = (frozenset("*/%"), frozenset("+-"), _COMPARISON)  # the tightest first
_NEGATIONS, _SIGNS = Regex(r"(?:not(?!\w)\s*)*"), Regex(r"(?:-\s*)*")
_QUANTIFIER = Regex(r"(?P<how>1|any|all)\s+of\s+(?P<glob>them\b|[a-z_][a-z0-9_]*\*?)")
_CALLED = Regex(rf"{_WORD}(?=\s*\()")
_LEAF = Regex(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?(?:(?:ms|[smhd]|[KMGT]iB)\b)?(?![\w.]))"
    r"|(?P<string>'[^'\n]*'|\"[^\"\n]*\")"
    r"|(?P<boolean>(?:true|false)\b(?!\s*\())"
    rf"|(?P<name>{_WORD}(?:\.(?:all|min|max|first|last|sum)\b|(?!\s*\())(?![\w.]))",
    as_match=True,
)
_OPEN, _CLOSE, _COMMA = (Suppress(char) for char in "(),")


@cache
def _grammar() -> ParserElement:
    """Return the parser. It never backtracks past an operator or a parenthesis (`-`), so its time is linear in the text and a
    syntax error has its own offset. Operators that differ in rank only are read as one list: each level costs a call."""
    logical = Forward()
    arguments = _OPEN - (_CLOSE | (logical - ZeroOrMore(_COMMA - logical) - _CLOSE))
    call = (_CALLED - arguments).set_parse_action(lambda parts: Call(parts[0], tuple(parts[1:])))
    atom = _LEAF.copy().set_parse_action(_leaf) | call | (_OPEN - logical - _CLOSE)
    signed = (_SIGNS + atom).set_parse_action(lambda parts: _prefixed("-", parts[0].count("-"), parts[1]))
    operator = _ARITHMETIC.copy().set_parse_action(lambda _, offset, parts: (parts[0], offset))
    arithmetic = (signed + ZeroOrMore(operator - signed)).set_parse_action(_by_rank)
    quantifier = _QUANTIFIER.copy().set_parse_action(_quantifier)
    negation = _NEGATIONS + (quantifier | arithmetic)
    negation.set_parse_action(lambda parts: _prefixed("not", parts[0].count("not"), parts[1]))
    logical <<= (negation + ZeroOrMore(_LOGICAL - negation)).set_parse_action(_balanced)
    return logical + StringEnd()


def _leaf(parts: ParseResults) -> Any:
    match = parts[0]
    text = match[0]
    match match.lastgroup:
        case "number":
            return _number(text)
        case "string":
            return Literal(text[1:-1])
        case "boolean":
            return Literal(text == "true")
    return NameExpression(text)


def _quantifier(_text: str, offset: int, parts: ParseResults) -> _Quantifier:
    return _Quantifier(parts["how"] == "all", str(parts["glob"]), offset)


def _prefixed(operator: str, count: int, operand: Any) -> Any:
    return reduce(lambda inner, _: Unary(operator, inner), range(count), operand)


def _by_rank(text: str, _offset: int, parts: ParseResults) -> Any:
    """Return the tree of operands and the operators between them, left to right within a rank. Comparisons have no chains."""
    operands, operators = list(parts[0::2]), list(parts[1::2])
    comparisons = [offset for operator, offset in operators if operator in _COMPARISON]
    if len(comparisons) > 1:
        raise ParseFatalException(text, comparisons[1])
    for rank in _RANKS:
        operands, operators = _joined(operands, operators, rank)
    return operands[0]


def _joined(operands: list[Any], operators: list[Any], rank: frozenset[str]) -> tuple[list[Any], list[Any]]:
    """Return operands and operators after those of one rank were joined to trees."""
    left, others = [operands[0]], []
    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator[0] in rank:
            left[-1] = Binary(operator[0], left[-1], operand)
        else:
            left.append(operand)
            others.append(operator)
    return left, others


def _balanced(parts: ParseResults) -> Any:
    """Return the tree of operands joined by `and` and `or`, of which `and` binds tighter."""
    conjunctions = [[parts[0]]]
    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        if operator == "and":
            conjunctions[-1].append(operand)
        else:
            conjunctions.append([operand])
    return join("or", [join("and", operands) for operands in conjunctions])


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
