"""Chooses the signs of tests and detections (engine/model/signs): of the texts that must occur, those rarest in good logs.

This is the only module that reads regular expressions. It reads RE2's syntax from left to right; what it does not understand
only makes a text uncertain. How rare a text is follows from `quadgrams.json`: in how many of 10,000 lines of samples/goodlog
four folded characters stand (written by tests/rulepack/quadgrams.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from engine.model.expressions import Binary, Expression, NameExpression
from engine.model.rules import Item, Test
from engine.model.signs import folded

DATA = Path(__file__).with_name("quadgrams.json")
WIDTH = 4
SHORTEST = 3  # characters of a sign
LINES = 10_000  # that the counts refer to

_ATOM = re.compile(
    r"(?P<empty>\(\?[a-zA-Z-]+\)|[\^$]|\\[bBAz])"  # flags and places: they take no character
    r"|(?P<open>\((?:\?(?:P?<\w+>|[a-zA-Z-]*:))?)"
    r"|(?P<digit>\\d|\[0-9\])"
    r"|(?P<blank>\\[sntrfv])"
    r"|(?P<other>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\[DSwW]|\\[pP](?:\{\^?\w+\}|\w)|\\x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})|\.)"
    r"|\\(?P<escaped>[\W_])"
    r"|(?P<char>[^\\()|*+?])",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:(?P<mark>[*+?])|\{(?P<least>\d+)(?:,\d*)?\})\??")


class _Branches(Struct, frozen=True):
    """A group of several branches, each the atoms of a sequence."""

    branches: tuple[_Atoms, ...]


class _AnyText(Struct, frozen=True):
    """Anything, of any length: what stands before and after it are different texts."""


_ANY_TEXT = _AnyText()
_Atoms = tuple[str | _Branches | _AnyText, ...]  # fixed characters, one each, and the rest


class _Unreadable(Exception):
    """The expression uses something that this reader does not know."""


def signs_of_test(op: str, field: str, value: str, regex: str = "") -> tuple[str, ...]:
    """Return the signs of a test; empty when no text is certain, or the field is no part of an event's text."""
    if field not in ("text", "message"):
        return ()
    if op in ("contains", "startswith", "endswith"):
        return _rarest([(_sign(value),)])
    return _rarest(certain_texts(regex)) if op in ("pattern", "re") else ()


def signs_of_detection(items: Sequence[Item], condition: Expression) -> tuple[str, ...]:
    """Return the signs of a detection; empty when none are known."""
    return _of_condition({item.name: _either(map(_group_signs, item.any_of)) for item in items}, condition)


def _of_condition(signs: Mapping[str, tuple[str, ...]], condition: Expression) -> tuple[str, ...]:
    match condition:
        case NameExpression(name):
            return signs.get(name, ())
        case Binary("and", left, right):
            return _rarest([_of_condition(signs, left), _of_condition(signs, right)])
        case Binary("or", left, right):
            return _either((_of_condition(signs, left), _of_condition(signs, right)))
    return ()


def _group_signs(tests: Sequence[Test]) -> tuple[str, ...]:
    return _rarest([test.signs for test in tests])


def _either(alternatives: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the texts of which one must occur when one of several sets must; empty when one of the sets is."""
    sets = list(alternatives)
    return tuple(dict.fromkeys(text for texts in sets for text in texts)) if all(sets) else ()


def _rarest(sets: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the set whose texts occur in the fewest lines; of equal ones the smallest, then the one with the longest texts."""
    usable = [texts for texts in sets if texts and min(map(len, texts)) >= SHORTEST]
    return min(usable, key=lambda texts: (sum(map(lines_with, texts)), len(texts), -min(map(len, texts))), default=())


@cache
def lines_with(sign: str) -> int:
    """Return in how many of LINES lines of good logs a folded text stands at the most."""
    counts = _counts()
    grams = [sign[at : at + WIDTH] for at in range(len(sign) - WIDTH + 1)]
    return min((counts.get(gram, 0) for gram in grams), default=LINES)


@cache
def _counts() -> Mapping[str, int]:
    counts: Mapping[str, int] = json.loads(DATA.read_text(encoding="utf-8"))
    return counts


@cache
def certain_texts(regex: str) -> Sequence[tuple[str, ...]]:
    """Return sets of folded texts: wherever `regex` matches, one of each set occurs."""
    try:
        return _sets(_RegexReader(regex).whole())
    except _Unreadable:
        return ()


def _sets(atoms: _Atoms) -> list[tuple[str, ...]]:
    sets: list[tuple[str, ...]] = []
    text = ""
    for atom in (*atoms, _ANY_TEXT):
        if isinstance(atom, str):
            text += atom
            continue
        sets.append((_sign(text),))
        text = ""
        if isinstance(atom, _Branches):
            sets.append(_either(_rarest(_sets(branch)) for branch in atom.branches))
    return [texts for texts in sets if texts and min(map(len, texts)) >= SHORTEST]


def _sign(text: str) -> str:
    return folded(text.encode("utf-8", "replace")).decode()


class _RegexReader:
    """Reads an expression from left to right."""

    def __init__(self, regex: str) -> None:
        self._regex, self._at = regex, 0

    def whole(self) -> _Atoms:
        """Return the atoms of the whole expression. Raises _Unreadable."""
        atoms = self._alternatives()
        if self._at < len(self._regex):
            raise _Unreadable
        return atoms

    def _alternatives(self) -> _Atoms:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else (_Branches(tuple(branches)),)

    def _sequence(self) -> _Atoms:
        atoms: list[str | _Branches | _AnyText] = []
        while self._peek() not in ("", "|", ")"):
            atom = self._atom()
            repeat = _REPEAT.match(self._regex, self._at)
            if repeat is None:
                atoms += atom
                continue
            self._at = repeat.end()
            if repeat["mark"] == "+" or int(repeat["least"] or 0) > 0:
                blank = atom == (" ",)  # a stretch of blanks is one blank
                atoms += atom if blank else (*atom, _ANY_TEXT, *atom)
            else:
                atoms.append(_ANY_TEXT)
        return tuple(atoms)

    def _atom(self) -> _Atoms:
        match = _ATOM.match(self._regex, self._at)
        if match is None:
            raise _Unreadable
        self._at = match.end()
        if match["open"]:
            atoms = self._alternatives()
            if self._peek() != ")":
                raise _Unreadable
            self._at += 1
            return atoms
        if match["other"]:
            return (_ANY_TEXT,)
        if match["digit"] or match["blank"]:
            return ("0" if match["digit"] else " ",)
        return () if match["empty"] else (match["escaped"] or match["char"],)

    def _peek(self) -> str:
        return self._regex[self._at : self._at + 1]
