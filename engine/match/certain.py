"""Certain texts of a regular expression: fixed texts of which one occurs in everything that it matches.

Read from its RE2 syntax alone; whatever is not understood (flags, unusual escapes) only makes the answer "none known".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SHORTEST = 3

_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?:|\?P?<\w+>)?(?!\?)")
_ESCAPE = re.compile(r"\\(?:(?P<fixed>\W)|[dDsSwWbBAzntrfv])")
_SPECIAL = frozenset(".^$")


class _Unreadable(Exception):
    """The expression uses something that this reader does not know."""


def certain_texts(regex: str) -> tuple[str, ...]:
    """Return texts of which at least one occurs in every match of `regex`; empty when none are known."""
    try:
        reader = _Reader(regex)
        found = reader.alternatives()
    except _Unreadable:
        return ()
    return found if reader.ended() else ()


def most_telling(choices: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the one of several sets of texts that is expected to occur most seldom: its shortest text decides."""
    return max(choices, key=lambda texts: (min(map(len, texts), default=0), -len(texts)), default=())


def either(choices: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the texts of which one must occur when one of several sets must; empty when one of the sets is."""
    known = list(choices)
    return tuple(dict.fromkeys(text for texts in known for text in texts)) if all(known) else ()


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, regex: str) -> None:
        self._regex, self._at = regex, 0

    def ended(self) -> bool:
        return self._at == len(self._regex)

    def alternatives(self) -> tuple[str, ...]:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return either(branches)

    def _sequence(self) -> tuple[str, ...]:
        """Read up to the end of a branch; return its most telling texts."""
        found: list[tuple[str, ...]] = []
        text = ""
        while self._peek() not in ("", "|", ")"):
            char, inner = self._atom()
            repeat = self._take(_REPEAT)
            sure = repeat is None or repeat[0][0] == "+"
            if char and sure:
                text += char
            if not char or repeat is not None:
                found += [(text,), inner if sure else ()]
                text = ""
        return most_telling(texts for texts in (*found, (text,)) if texts and min(map(len, texts)) >= SHORTEST)

    def _atom(self) -> tuple[str, tuple[str, ...]]:
        """Read one atom: a fixed character, or what is certain of anything else."""
        char = self._peek()
        if char == "(":
            return "", self._group()
        if char == "[":
            self._expect(_CLASS)
            return "", ()
        if char == "\\":
            return self._expect(_ESCAPE)["fixed"] or "", ()
        self._at += 1
        return ("", ()) if char in _SPECIAL else (char, ())

    def _group(self) -> tuple[str, ...]:
        self._expect(_GROUP)
        inner = self.alternatives()
        if self._peek() != ")":
            raise _Unreadable
        self._at += 1
        return inner

    def _peek(self) -> str:
        return self._regex[self._at : self._at + 1]

    def _take(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._regex, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _expect(self, expression: re.Pattern[str]) -> re.Match[str]:
        found = self._take(expression)
        if found is None:
            raise _Unreadable
        return found
