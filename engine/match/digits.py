"""Whether digits matter: texts that are equal except for digits are the same to an expression that tells no digits apart.

This follows from the characters of the expression, one at a time; what is not understood counts as telling digits apart.
"""

from __future__ import annotations

import re
from functools import cache

import re2

from engine.match.checks import expression
from engine.model.rules import Test

DIGITS = "0123456789"
ALIKE = bytes.maketrans(DIGITS.encode(), b"0" * len(DIGITS))  # makes texts equal that differ in digits only

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


def is_digit_blind(test: Test) -> bool:
    """Tell whether `test` answers alike for texts that are equal except for digits, and captures at the same places."""
    if test.op in ("pattern", "re"):
        names = [hole.name for hole in test.captures]  # equal names have to hold equal text
        return widened(test.regex) == test.regex and len(set(names)) == len(names)
    if test.op in ("contains", "startswith", "endswith"):
        return not any(digit in test.value for digit in DIGITS)
    return test.op == "exists"


def may_differ(test: Test, text: bytes) -> bool:
    """Tell whether `test`, of an event's text, may hold or capture otherwise in texts that equal `text` except for digits."""
    wide = widened(test.regex) if test.op in ("pattern", "re") else None
    if wide is None:
        return True
    return expression(wide, test.nocase).search(text) is not None and not _holds_without_digits(test, text)


def _holds_without_digits(test: Test, text: bytes) -> bool:
    """Tell whether `test`, which captures nothing, holds of a stretch of `text` without any digit."""
    match = expression(test.regex, test.nocase).search(text) if not test.captures else None
    return match is not None and not any(digit in match[0] for digit in DIGITS.encode())


@cache
def _wide(part: str) -> str:
    """Return one character of an expression so that it takes every digit if it takes one."""
    try:
        single = expression(part)
    except re2.error:
        return part  # what stands for no character, or for the end of the text
    taken = sum(single.fullmatch(digit.encode()) is not None for digit in DIGITS)
    return part if taken in (0, len(DIGITS)) else f"(?:{part}|[0-9])"
