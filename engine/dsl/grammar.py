"""The expression language of conditions, escalations and `{= }` holes: text to engine.model.expressions, by lark.

    or  and  not  == != < <= > >=  + -  * / %  -x  ( )  name  name.max  12  3.5  10m  1MiB  'text'  true  f(x, y)
    1 of x_*   any of them   all of x_*        (quantifiers over detection items)

A duration is its number of seconds, a size its number of bytes. Chains of `and` and `or` become balanced trees. No eval, no
attribute access.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken, v_args
from msgspec import Struct

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


class ExpressionError(Exception):
    """An expression that cannot be used: what is wrong, at which character, and what to do."""

    def __init__(self, code: Code, message: str, offset: int = 0, length: int = 1, help: str = "") -> None:
        self.code, self.message, self.offset, self.length, self.help = code, message, offset, length, help
        super().__init__(message)


class _Quantifier(Struct, frozen=True):
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
        spelled = _spelled(text)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    if _depth(spelled) > MAX_DEPTH:
        raise ExpressionError(
            Code.EXPRESSION_TOO_DEEP, f"nested deeper than {MAX_DEPTH} levels", help="split it into several items"
        )
    return _resolve(spelled, items, text)


@lru_cache(maxsize=4096)
def _spelled(text: str) -> Any:
    """Return what `text` spells before the items are known; steps and cases of a rule ask the same again and again."""
    return _grammar().parse(text)


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


def _syntax_error(text: str, error: UnexpectedInput) -> ExpressionError:
    loc = error.pos_in_stream or 0
    rest = re.match(r"\w+|\S", text[loc:])
    if rest is None or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return ExpressionError(
            Code.EXPRESSION_SYNTAX, "the expression ends too early", max(0, len(text.rstrip()) - 1), help=_SYNTAX
        )
    return ExpressionError(Code.EXPRESSION_SYNTAX, f"`{rest[0]}` is not expected here", loc, len(rest[0]), _SYNTAX)


_SYNTAX = "write for example `too_large and not retried`, `size > 1048576`, `1 of sent_*`"


_WORD = r"(?!(?:and|or|not|of|true|false)\b)[a-z_][a-z0-9_]*"
_GRAMMAR = rf"""
?either: both | both (OR both)+ -> balanced
?both: negated | negated (AND negated)+ -> balanced
?negated: NOT negated -> prefixed | QUANTIFIER -> quantifier | compared
?compared: total | total COMPARISON total -> binary
?total: product | total (PLUS | MINUS) product -> binary
?product: negative | product TIMES negative -> binary
?negative: MINUS negative -> prefixed | atom
?atom: CALLED "(" (either ("," either)*)? ")" -> call
     | NAME -> name | NUMBER -> number | STRING -> string | BOOLEAN -> boolean | "(" either ")"

OR: /or(?!\w)/
AND: /and(?!\w)/
NOT: /not(?!\w)/
QUANTIFIER.1: /(1|any|all)\s+of\s+(them\b|[a-z_][a-z0-9_]*\*?)/
COMPARISON: /[=!<>]=|[<>]/
PLUS: "+"
MINUS: "-"
TIMES: /[*\/%]/
CALLED.1: /{_WORD}(?=\s*\()/
NAME: /{_WORD}(?:\.(?:all|min|max|first|last|sum)\b)?(?![\w.])/
NUMBER: /[0-9]+(?:\.[0-9]+)?(?:(?:ms|[smhd]|[KMGT]iB)\b)?(?![\w.])/
STRING: /'[^'\n]*'|"[^"\n]*"/
BOOLEAN: /(?:true|false)\b(?!\s*\()/
%ignore /\s+/
"""


@v_args(inline=True)
class _Expressions(Transformer[Token, Any]):
    """What the alternatives of _GRAMMAR make of their parts."""

    def number(self, text: Token) -> Literal:
        return _number(text)

    def string(self, text: Token) -> Literal:
        return Literal(text[1:-1])

    def boolean(self, text: Token) -> Literal:
        return Literal(text == "true")

    def name(self, text: Token) -> Name:
        return Name(str(text))

    def call(self, function: Token, *arguments: Any) -> Call:
        return Call(str(function), arguments)

    def quantifier(self, text: Token) -> _Quantifier:
        how, _, glob = text.split()
        return _Quantifier(how == "all", glob, text.start_pos or 0)

    def prefixed(self, operator: Token, operand: Any) -> Unary:
        return Unary(str(operator), operand)

    def binary(self, left: Any, operator: Token, right: Any) -> Binary:
        return Binary(str(operator), left, right)

    def balanced(self, *parts: Any) -> Any:
        return join(str(parts[1]), parts[0::2])


@cache
def _grammar() -> Lark:
    """Return the parser: LALR, so that its time is linear in the text and no nesting fills the stack."""
    return Lark(_GRAMMAR, start="either", parser="lalr", transformer=_Expressions())


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
            _check_call(function, len(arguments), text)
            return Call(function, tuple(_resolve(argument, items, text) for argument in arguments))
    leaf: Expression = tree
    return leaf


def _check_call(function: str, given: int, text: str) -> None:
    if function not in FUNCTIONS:
        message, help_line = f"there is no function `{function}`", f"known: {', '.join(FUNCTIONS)}"
        raise ExpressionError(Code.UNKNOWN_FUNCTION, message, offset_of(text, function), len(function), help_line)
    low, high = ARITY[function]
    if not low <= given <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        message = f"`{function}` takes {wanted} arguments, not {given}"
        raise ExpressionError(Code.WRONG_ARGUMENTS, message, offset_of(text, function), len(function))


def _depth(tree: Any) -> int:
    """Return how many levels `tree` has; level by level, as a text may have more of them than a stack takes."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for each in level for child in _children(each)]
    return depth


def _children(expression: Any) -> Iterator[Any]:
    match expression:
        case Unary(_, operand):
            yield operand
        case Binary(_, left, right):
            yield from (left, right)
        case Call(_, arguments):
            yield from arguments
