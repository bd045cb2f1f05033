"""The gate: one search of the text that tells whether any signature with a required literal can match at all.

It may let events through that match nothing; it never holds back one that matches. Most log lines stop here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.match.checks import expression
from engine.model.expressions import UNKNOWN, Expression, evaluate
from engine.model.rules import Item, Test


def required_literals(items: Sequence[Item], condition: Expression) -> tuple[str, ...]:
    """Return texts of which at least one must occur in an event's text for `condition` to hold; empty: no such set is known."""
    by_item = {item.name: literals_of(item.any_of) for item in items}
    none_holds = {name: False if literals else UNKNOWN for name, literals in by_item.items()}
    if evaluate(condition, none_holds) is not False:
        return ()
    return tuple(dict.fromkeys(literal for literals in by_item.values() for literal in literals))


def literals_of(groups: Iterable[Sequence[Test]]) -> tuple[str, ...]:
    """Return one literal for each group of tests, its longest; empty when a group has none in the text of the event."""
    chosen = [_longest(tests) for tests in groups]
    return tuple(chosen) if chosen and all(chosen) else ()


def _longest(tests: Sequence[Test]) -> str:
    literals = [text for test in tests if test.field == "text" and not test.nocase for text in test.literals]
    return max(literals, key=len, default="")


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
