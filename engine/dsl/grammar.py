"""The expression language of conditions, escalations and `{= }` holes: text to engine.model.expressions, by pyparsing.

    or  and  not  == != < <= > >=  + -  * / %  -x  ( )  name  name.max  12  3.5  10m  1MiB  'text'  true  f(x, y)
    1 of x_*   any of them   all of x_*        (quantifiers over detection items)

A duration is its number of seconds, a size its number of bytes. Chains of `and` and `or` become balanced trees. No eval, no
attribute access.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache, reduce
from typing import Any

import pyparsing as pp

from engine.dsl.codes import Code
from engine.dsl.quantities import MAX_DIGITS, UNIT_S
from engine.dsl.units import DURATION
from engine.model.expressions import FUNCTIONS, Binary, Call, Expression, Literal, Name, Unary

MAX_DEPTH = 32
MAX_LENGTH = 4096
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
_WORDS = ("and", "or", "not", "of", "true", "false")


class ExpressionError(Exception):
    """An expression that cannot be used: what is wrong, at which character, and what to do."""

    def __init__(self, code: Code, message: str, offset: int = 0, length: int = 1, help: str = "") -> None:
        self.code, self.message, self.offset, self.length, self.help = code, message, offset, length, help
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class _Quantifier:
    """`1 of x_*` before the items are known."""

    every: bool
    glob: str
    offset: int


def parse(text: str, items: Sequence[str] = ()) -> Expression:
    """Return the expression that `text` spells; `items` are the detection items that quantifiers range over.

    Raises ExpressionError with the offset in `text`. Whether names exist is for the caller to check.
    """
    _check_size(text)
    try:
        with _deep_stack():
            made = _resolve(_spelled(text), items, text)
            depth = _depth(made)
    except pp.ParseBaseException as error:
        raise _syntax_error(text, error.loc) from None
    if depth > MAX_DEPTH:
        raise ExpressionError(
            Code.EXPRESSION_TOO_DEEP, f"nested deeper than {MAX_DEPTH} levels", help="split it into several items"
        )
    return made


@lru_cache(maxsize=4096)
def _spelled(text: str) -> Any:
    """Return what `text` spells before the items are known; steps and cases of a rule ask the same again and again."""
    return _grammar().parse_string(text, parse_all=True)[0]


def offset_of(text: str, name: str) -> int:
    """Return where `name` first stands as a word of its own in `text` (0 when it does not)."""
    found = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text)
    return found.start() if found else 0


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


def _syntax_error(text: str, loc: int) -> ExpressionError:
    while loc < len(text) and text[loc].isspace():
        loc += 1
    rest = re.match(r"\w+|\S", text[loc:])
    if rest is None:
        return ExpressionError(
            Code.EXPRESSION_SYNTAX, "the expression ends too early", max(0, len(text.rstrip()) - 1), help=_SYNTAX
        )
    return ExpressionError(Code.EXPRESSION_SYNTAX, f"`{rest[0]}` is not expected here", loc, len(rest[0]), _SYNTAX)


_SYNTAX = "write for example `too_large and not retried`, `size > 1048576`, `1 of sent_*`"


@cache
def _grammar() -> pp.ParserElement:
    """Return the grammar: one rule a precedence level, so that its time is linear in the text."""
    number = pp.Regex(r"[0-9]+(?:\.[0-9]+)?(?:(?:ms|[smhd]|[KMGT]iB)\b)?(?![\w.])").set_parse_action(
        lambda t: _number(str(t[0]))
    )
    string = pp.Regex(r"'[^'\n]*'|\"[^\"\n]*\"").set_parse_action(lambda t: Literal(str(t[0])[1:-1]))
    boolean = pp.Regex(r"(?:true|false)\b(?!\s*\()").set_parse_action(lambda t: Literal(t[0] == "true"))
    reserved = "|".join(_WORDS)
    word = rf"(?!(?:{reserved})\b)[a-z_][a-z0-9_]*"
    name = pp.Regex(rf"{word}(?:\.(?:all|min|max|first|last|sum)\b)?(?![\w.])").set_parse_action(lambda t: Name(str(t[0])))
    either = pp.Forward()
    call = (
        pp.Regex(rf"{word}(?=\s*\()") + pp.Suppress("(") + pp.Optional(pp.DelimitedList(either)) + pp.Suppress(")")
    ).set_parse_action(_call)
    atom = call | name | number | string | boolean | (pp.Suppress("(") + either + pp.Suppress(")"))
    negative = (pp.ZeroOrMore(pp.Literal("-")) + atom).set_parse_action(_prefixed)
    product = _chain(negative, pp.one_of("* / %"))
    total = _chain(product, pp.one_of("+ -"))
    compared = (total + pp.Optional(pp.one_of("== != <= >= < >") - total)).set_parse_action(_left)
    quantifier = pp.Regex(r"(?P<how>1|any|all)\s+of\s+(?P<glob>them\b|[a-z_][a-z0-9_]*\*|[a-z_][a-z0-9_]*)").set_parse_action(
        _quantifier
    )
    negated = (pp.ZeroOrMore(pp.Keyword("not")) + (quantifier | compared)).set_parse_action(_prefixed)
    both = _joined(negated, pp.Keyword("and"))
    either <<= _joined(both, pp.Keyword("or"))
    return either


def _chain(operand: pp.ParserElement, operator: pp.ParserElement) -> pp.ParserElement:
    return (operand + pp.ZeroOrMore(operator - operand)).set_parse_action(_left)


def _joined(operand: pp.ParserElement, operator: pp.ParserElement) -> pp.ParserElement:
    return (operand + pp.ZeroOrMore(operator - operand)).set_parse_action(_balanced)


def _number(text: str) -> Literal:
    unit = re.search(r"[A-Za-z]+$", text)
    if unit and unit[0] in SIZES:
        return Literal(int(float(text[: unit.start()]) * SIZES[unit[0]]))
    if unit:
        return Literal(round(float(text[: unit.start()]) * UNIT_S[unit[0]], 6), DURATION)
    return Literal(float(text) if "." in text else int(text))


def _call(tokens: Any) -> Call:
    return Call(str(tokens[0]), tuple(tokens[1:]))


def _quantifier(text: str, loc: int, tokens: Any) -> _Quantifier:
    return _Quantifier(tokens["how"] == "all", tokens["glob"], loc)


def _prefixed(tokens: Any) -> Any:
    return reduce(lambda operand, operator: Unary(operator, operand), reversed(tokens[:-1]), tokens[-1])


def _left(tokens: Any) -> Any:
    pairs = zip(tokens[1::2], tokens[2::2], strict=True)
    return reduce(lambda left, pair: Binary(pair[0], left, pair[1]), pairs, tokens[0])


def _balanced(tokens: Any) -> Any:
    return join(tokens[1] if len(tokens) > 1 else "and", list(tokens[0::2]))


def join(operator: str, operands: Sequence[Any]) -> Any:
    """Return `operands` (at least one) joined by `and` or `or` as a balanced tree."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return Binary(operator, join(operator, operands[:middle]), join(operator, operands[middle:]))


def _resolve(tree: Any, items: Sequence[str], text: str) -> Expression:
    """Replace quantifiers by their items, and check calls."""
    match tree:
        case _Quantifier(every, glob, offset):
            named = [item for item in items if glob == "them" or fnmatchcase(item, glob)]
            if not named:
                raise ExpressionError(Code.NO_SUCH_ITEMS, f"no detection item is called `{glob}`", offset)
            chosen: Expression = join("and" if every else "or", [Name(item) for item in named])
            return chosen
        case Unary(op, operand):
            return Unary(op, _resolve(operand, items, text))
        case Binary(op, left, right):
            return Binary(op, _resolve(left, items, text), _resolve(right, items, text))
        case Call(function, arguments):
            _check_call(function, len(arguments), offset_of(text, function))
            return Call(function, tuple(_resolve(argument, items, text) for argument in arguments))
    leaf: Expression = tree
    return leaf


def _check_call(function: str, given: int, offset: int) -> None:
    if function not in FUNCTIONS:
        help_line = f"known: {', '.join(FUNCTIONS)}"
        raise ExpressionError(Code.UNKNOWN_FUNCTION, f"there is no function `{function}`", offset, len(function), help_line)
    low, high = ARITY[function]
    if not low <= given <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        message = f"`{function}` takes {wanted} arguments, not {given}"
        raise ExpressionError(Code.WRONG_ARGUMENTS, message, offset, len(function))


def _depth(expression: Expression) -> int:
    return 1 + max((_depth(child) for child in _children(expression)), default=0)


def _children(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Unary(_, operand):
            yield operand
        case Binary(_, left, right):
            yield from (left, right)
        case Call(_, arguments):
            yield from arguments


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Let pyparsing go MAX_DEPTH parentheses deep: each costs it about ninety frames."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 12_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
