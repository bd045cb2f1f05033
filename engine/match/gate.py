"""The gate: one search of the text that tells whether any signature with a required literal can match at all.

It may let events through that match nothing; it never holds back one that matches. Most log lines stop here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.match.certain import certain_texts, either, most_telling
from engine.match.checks import expression
from engine.model.expressions import Binary, Expression, Name
from engine.model.rules import Item, Test


def required_literals(items: Sequence[Item], condition: Expression) -> tuple[str, ...]:
    """Return texts of which at least one must occur in an event's text for `condition` to hold; empty: no such set is known.

    Of two conditions that must both hold the more telling one is asked for.
    """
    return _required({item.name: literals_of(item.any_of) for item in items}, condition)


def literals_of(groups: Iterable[Sequence[Test]]) -> tuple[str, ...]:
    """Return texts of which one must occur in an event's text for one of the groups of tests to hold; empty: not known."""
    return either(most_telling(_certain(test) for test in tests) for tests in groups)


def _required(literals: Mapping[str, tuple[str, ...]], condition: Expression) -> tuple[str, ...]:
    match condition:
        case Name(name):
            return literals.get(name, ())
        case Binary("and", left, right):
            return most_telling((_required(literals, left), _required(literals, right)))
        case Binary("or", left, right):
            return either((_required(literals, left), _required(literals, right)))
    return ()


def _certain(test: Test) -> tuple[str, ...]:
    if test.field != "text" or test.nocase:
        return ()
    if test.literals:
        return (max(test.literals, key=len),)
    return certain_texts(test.regex) if test.op in ("pattern", "re") else ()


class Gate:
    """Answers whether any of `literals` occurs in a text; `found` never says no where one does."""

    __slots__ = ("_expression",)

    def __init__(self, literals: Iterable[bytes]) -> None:
        wanted = sorted(set(literals))
        self._expression = expression("|".join(_quoted(text) for text in wanted)) if wanted else None

    def found(self, text: bytes) -> bool:
        """Return whether `text` holds one of the literals."""
        return self._expression is not None and self._expression.search(text) is not None


def _quoted(text: bytes) -> str:
    """Return an RE2 expression for exactly `text`, a whole number of characters of UTF-8."""
    return "".join(char if char.isalnum() or not char.isascii() else f"\\x{ord(char):02x}" for char in text.decode())
