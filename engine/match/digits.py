"""Whether digits matter: texts equal but for their digits are all the same to an expression that tells no two digits apart.

Read from RE2 syntax alone, as in engine/match/certain; what is not understood counts as telling digits apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from functools import cache

import re2
from msgspec import Struct
from msgspec.structs import replace

from engine.match.checks import expression
from engine.match.gate import Gate
from engine.match.signs import Signs
from engine.model.rules import Test
from engine.ports import Cache

DIGITS = "0123456789"
ALIKE = bytes.maketrans(DIGITS.encode(), b"0" * len(DIGITS))  # what texts that differ in digits only become equal by

_PARTS = re.compile(
    r"(?P<keeps>\(\?(?:P?<\w+>|[a-zA-Z-]*:|[a-zA-Z-]+\))|\{\d+(?:,\d*)?\})"  # a group's beginning, a count: their digits stay
    r"|(?P<one>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\(?:x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|[pP](?:\{\^?\w+\}|\w)|.)|[0-9])",
    re.DOTALL,
)
_STRANGE = ("\\Q", "\\C")  # quoted stretches, bytes


@cache
def widened(regex: str) -> str | None:
    """Return an expression that matches whatever `regex` would match if digits in a text were others: `regex` itself when it
    tells no digit from another; None when it is not understood."""
    if any(strange in regex for strange in _STRANGE):
        return None
    return _PARTS.sub(lambda part: _wide(part["one"]) if part["one"] else part[0], regex)


def decide(regexes: Iterable[str], text: bytes) -> bool:
    """Tell whether one of `regexes` may match at the beginning of `text` with some digits in it and not with others."""
    telling = (wide for regex in regexes if (wide := widened(regex)) != regex)
    return any(wide is None or expression(wide).match(text) for wide in telling)


def blind(test: Test) -> bool:
    """Tell whether `test` answers alike for texts that are equal but for their digits, and captures at the same places."""
    if test.op in ("pattern", "re"):
        names = [hole.name for hole in test.captures]  # equal names have to hold equal text
        return widened(test.regex) == test.regex and len(set(names)) == len(names)
    if test.op in ("contains", "startswith", "endswith"):
        return not any(digit in test.value for digit in DIGITS)
    return test.op == "exists"


class Numeric(Struct, frozen=True):
    """Tests to which digits matter, none when it is more than tests, and the signs without which none of it counts."""

    signs: Signs
    tests: Sequence[Test]


class Numerals:
    """Tells of texts whether their digits matter to what is looked for.

    Args:
        numeric: everything looked for to which they may.
        kept: where what takes long to make may lie ready.
    """

    def __init__(self, numeric: Iterable[Numeric], kept: Cache | None = None) -> None:
        self._numeric = tuple(numeric)
        self._gate = Gate([_widened(each.signs) for each in self._numeric], kept)

    def matter(self, text: bytes, before: int, fields: Set[str]) -> bool:
        """Tell whether what `text` bears may be borne otherwise when other digits stand before a place in it.

        Args:
            fields: those that would have other digits, besides the text.
        """
        possible = self._gate.possible(self._gate.signs_in(text))
        return any(_matters(self._numeric[number], text, before, fields) for number in possible)


def _matters(numeric: Numeric, text: bytes, before: int, fields: Set[str]) -> bool:
    return not numeric.tests or any(
        _may_begin(test, text, before) if test.field == "text" else test.field in fields for test in numeric.tests
    )


def _may_begin(test: Test, text: bytes, before: int) -> bool:
    """Tell whether `test` may hold of something that begins before a place of `text` with some digits and not with others."""
    wide = widened(test.regex) if test.op in ("pattern", "re") else None
    if wide is None:
        return True
    found = expression(wide, test.nocase).search(text)
    return found is not None and found.start() < before and not _holds_anyway(test, text)


def _holds_anyway(test: Test, text: bytes) -> bool:
    """Tell whether `test`, which captures nothing, holds of a stretch of `text` without any digit."""
    found = expression(test.regex, test.nocase).search(text) if not test.captures else None
    return found is not None and not any(digit in found[0] for digit in DIGITS.encode())


def _widened(signs: Signs) -> Signs:
    """Return signs that match in whatever those of `signs` would if digits were others; none when they are not known."""
    regexes: Sequence[str | None] = [widened(regex) for regex in signs.regexes]
    return replace(signs, regexes=tuple(regex for regex in regexes if regex) if all(regexes) else ())


@cache
def _wide(part: str) -> str:
    """Return one character of an expression so that it takes every digit if it takes one."""
    try:
        single = expression(part)
    except re2.error:
        return part  # what stands for no character, or for the end of the text
    taken = sum(single.fullmatch(digit.encode()) is not None for digit in DIGITS)
    return part if taken in (0, len(DIGITS)) else f"(?:{part}|[0-9])"
