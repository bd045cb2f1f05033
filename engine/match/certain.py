"""What is certain of a regular expression: texts of which one occurs in all that it matches, and its solid part.

Read from its RE2 syntax alone; whatever is not understood (unusual flags and escapes) only makes the answer "none known".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

SHORTEST = 3

_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_GROUP = re.compile(r"\((?:\?:|\?P?<\w+>)?(?!\?)")
_ESCAPE = re.compile(r"\\(?:(?P<fixed>\W)|[dDsSwWbBAzntrfv])")
_RUN = re.compile(r"(?:(?:[^\\.^$|()\[\]*+?{]+|\\\W)(?![*+?{]))+")  # fixed characters that nothing repeats
_ESCAPED = re.compile(r"\\(\W)")
_SPECIAL = frozenset(".^$")
_OPEN_ENDED = re.compile(r"(?<!\\)[*+{]")
_FLAGS = re.compile(r"(?:\(\?[ims]+\))?")
_PARTS = re.compile(rf"{_CLASS.pattern}|\\.|\{{(?P<least>\d+)(?:,(?P<most>\d*))?\}}", re.DOTALL)
_MANY = 10


Telling = Callable[[Sequence[tuple[str, ...]]], tuple[str, ...]]


class _Unreadable(Exception):
    """The expression uses something that this reader does not know."""


def most_telling(choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the one of several sets of texts that is expected to occur most seldom: its shortest text decides."""
    return max(choices, key=lambda texts: (min(map(len, texts), default=0), -len(texts)), default=())


def certain_texts(regex: str, telling: Telling = most_telling) -> tuple[str, ...]:
    """Return texts of which at least one occurs in every match of `regex`; empty when none are known.

    Args:
        telling: chooses among several such sets.
    """
    try:
        reader = _Reader(regex, telling)
        found = reader.alternatives()
    except _Unreadable:
        return ()
    return found if reader.ended() else ()


def all_certain_texts(regex: str) -> Sequence[tuple[str, ...]]:
    """Return every set of texts of which at least one occurs in every match of `regex`, as far as it can be told."""
    reader = _Reader(regex, most_telling)
    try:
        found = reader.choices()
    except _Unreadable:
        return ()
    if reader.ended():
        return found
    return [texts] if (texts := certain_texts(regex)) else ()  # it has alternatives


class Solid(Struct, frozen=True):
    """An expression that begins and ends in fixed characters, of which it has at least `weight`."""

    regex: str
    weight: int


def solid_part(regex: str) -> Solid | None:
    """Return `regex` without what its ends leave open: wherever `regex` matches, the solid part does, and ends seldom.

    What may stand there ten times or more may stand there any number of times in it: each costs a search set a copy. None when
    it has none, or asks for the begin or end of a text or line, which a part of a larger text knows nothing of.
    """
    flags = _FLAGS.match(regex)
    start = flags.end() if flags else 0
    reader = _Reader(regex[start:], most_telling)
    try:
        branches = reader.solid_branches()
    except _Unreadable:
        return None
    if not reader.ended() or not all(branch.weight for branch in branches):
        return None
    solid = "|".join(_PARTS.sub(_left_open, branch.regex) for branch in branches)
    return Solid(regex[:start] + solid, min(branch.weight for branch in branches))


def _left_open(part: re.Match[str]) -> str:
    least, most = part["least"], part["most"]
    if least is None or int(most or least) < _MANY:
        return part[0]
    return "+" if int(least) else "*"


def either(choices: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the texts of which one must occur when one of several sets must; empty when one of the sets is."""
    known = list(choices)
    return tuple(dict.fromkeys(text for texts in known for text in texts)) if all(known) else ()


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, regex: str, telling: Telling) -> None:
        self._regex, self._at, self._telling = regex, 0, telling
        self._borders: list[int] = []  # where it asks for the border of a text or line

    def ended(self) -> bool:
        return self._at == len(self._regex)

    def alternatives(self) -> tuple[str, ...]:
        branches = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._sequence())
        return either(branches)

    def solid_branches(self) -> list[Solid]:
        """Read all branches; return the solid part of each, of weight 0 where there is none."""
        branches = [self._solid_branch()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._solid_branch())
        return branches

    def _solid_branch(self) -> Solid:
        fixed: list[tuple[int, int]] = []
        weight, borders = 0, len(self._borders)
        while self._peek() not in ("", "|", ")"):
            start = self._at
            if run := self._run():
                fixed.append((start, self._at))
                weight += len(run)
                continue
            char, inner = self._atom()
            end = self._at
            if self._take(_REPEAT) is None and (char or (inner and _OPEN_ENDED.search(self._regex, start, end) is None)):
                fixed.append((start, end))
                weight += len(char) or min(map(len, inner))
        if not fixed:
            return Solid("", 0)
        start, end = fixed[0][0], fixed[-1][1]
        if any(start < border < end for border in self._borders[borders:]):
            raise _Unreadable
        return Solid(self._regex[start:end], weight)

    def _sequence(self) -> tuple[str, ...]:
        """Read up to the end of a branch; return its most telling texts."""
        return self._telling(self.choices())

    def choices(self) -> Sequence[tuple[str, ...]]:
        """Read up to the end of a branch; return the sets of texts of which one must occur, each."""
        found: list[tuple[str, ...]] = []
        text = ""
        while self._peek() not in ("", "|", ")"):
            if run := self._run():
                text += run
                continue
            char, inner = self._atom()
            repeat = self._take(_REPEAT)
            sure = repeat is None or repeat[0][0] == "+"
            if char and sure:
                text += char
            if not char or repeat is not None:
                found += [(text,), inner if sure else ()]
                text = ""
        return [texts for texts in (*found, (text,)) if texts and min(map(len, texts)) >= SHORTEST]

    def _run(self) -> str:
        """Read fixed characters that nothing repeats; return what they stand for, empty when there are none."""
        found = self._take(_RUN)
        run = found[0] if found is not None else ""
        return _ESCAPED.sub(r"\1", run) if "\\" in run else run

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
        if char in "^$":
            self._borders.append(self._at)
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
