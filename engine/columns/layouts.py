"""Which layout each line is in, asked of all lines side by side: the lowest rank that fits, as engine/parse/headers has it.

Only layouts that were met so far are asked one by one, so that a log costs what its own layouts do; whatever fits any other
goes to the parser, and is met from then on. What was met never changes an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.columns.lines import Flags, Integers, flags_of, index_of, mask_of
from engine.match.checks import expression
from engine.match.digits import widened
from engine.model.rules import Format
from engine.parse.headers import GENERIC_RANK, HeaderBook, header_book

PROBED = 64  # lines in layouts not met so far that the parser looks at together
NONE = -1

Layouts = npt.NDArray[np.int16]


class Recogniser:
    """Tells the layouts of lines, by their number in `formats` (lowest rank first); NONE where no event begins.

    Attributes:
        formats: the layouts, lowest rank first.
        generic: from which number on layouts take any line with a stamp, wrapped or not.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._book: HeaderBook = header_book(formats)
        self.formats = self._book.formats
        self.generic = sum(each.rank < GENERIC_RANK for each in self.formats)
        self._met: list[int] = []
        self._heads: dict[int, str] = {}

    def layouts(self, lines: pa.StringArray) -> Layouts:
        """Return the layout of each of `lines`, which have no line ends."""
        found = np.full(len(lines), NONE, np.int16)
        rows = np.arange(len(lines))
        while len(rows):
            rows, lines = self._by_met(lines, rows, found)
            if not len(rows):
                break
            fits = matching(lines, self._any)
            rows, lines = rows[fits], lines.filter(mask_of(fits))
            self._meet(lines[:PROBED])
        return found

    def begins(self, line: str) -> bool:
        """Tell whether a line is in any layout."""
        return self._book.find(line) is not None

    def knows(self, texts: pa.StringArray) -> Flags:
        """Return which texts are in a layout of their own, so that nothing wraps them."""
        return matching(texts, _either([each.header for each in self.formats[: self.generic]]))

    @cached_property
    def _any(self) -> str:
        return _either([each.header for each in self.formats])

    def _by_met(self, lines: pa.StringArray, rows: Integers, found: Layouts) -> tuple[Integers, pa.StringArray]:
        """Give those of `rows` that are in a layout that was met their layout; return the others."""
        for index in sorted(self._met):
            if not len(rows):
                break
            fits = matching(lines, self.formats[index].header)
            if not fits.any():
                continue
            taken = rows[fits]
            found[taken] = index
            self._prefer(lines.filter(mask_of(fits)), taken, index, found)
            rows, lines = rows[~fits], lines.filter(mask_of(~fits))
        return rows, lines

    def _prefer(self, lines: pa.StringArray, rows: Integers, index: int, found: Layouts) -> None:
        """Look again at those lines that may be in a layout of lower rank that was not met."""
        better = [self.formats[each].header for each in range(index) if each not in self._met]
        doubted = np.flatnonzero(matching(lines, _either(better))) if better else np.zeros(0, np.int64)
        if not len(doubted):
            return
        some, met = lines.take(index_of(doubted)), len(self._met)
        self._meet(some[:PROBED])
        again = len(self._met) > met
        found[rows[doubted]] = self.layouts(some) if again else [self._number(line) for line in some.to_pylist()]

    def _meet(self, lines: pa.StringArray) -> None:
        for line in lines.to_pylist():
            number = self._number(line)
            if number != NONE and number not in self._met:
                self._met.append(number)

    def _number(self, line: str) -> int:
        found = self._book.find(line)
        return NONE if found is None else self.formats.index(found)

    @cached_property
    def telling(self) -> Layouts:
        """The layouts that tell one digit from another, so that texts equal but for digits may be in another one."""
        return np.array([n for n, each in enumerate(self.formats) if widened(each.header) != each.header], np.int16)

    @cached_property
    def labelling(self) -> Layouts:
        """The layouts whose lines give labels to others below them, and those of these others."""
        takers = {name for each in self.formats for name in each.carries}
        return np.array([n for n, each in enumerate(self.formats) if each.carries or each.name in takers], np.int16)

    def level_span(self, line: bytes) -> tuple[int, int]:
        """Return where the level of a line in a telling layout stands; an empty stretch where it has none."""
        for number in self.telling.tolist():
            match = expression(self.formats[number].header).match(line)
            if match is not None and "level" in match.re.groupindex:
                start, end = match.span(match.re.groupindex["level"])  # re2 takes no names here
                return max(start, 0), max(end, 0)
        return 0, 0

    def head(self, index: int) -> str:
        """Return the header of a layout up to its stamp, as an expression for `extract_regex`; "" when it has no stamp."""
        if index not in self._heads:
            self._heads[index] = head_of(self.formats[index].header)
        return self._heads[index]


def matching(lines: pa.StringArray, regex: str) -> Flags:
    """Return in which of `lines` an expression is found."""
    flags: Flags = flags_of(pc.match_substring_regex(lines, regex))
    return flags


def head_of(header: str) -> str:
    """Return a header up to the end of what its stamp is part of, with no other group named; "" when it has no stamp."""
    at = header.find("(?P<time>")
    if at < 0:
        return ""
    end = _end_of_group(header, at)
    for start, stop in groups_of(header):
        if start < at and stop > end:
            end = stop
    quantifier = re.compile(r"[?*+]|\{\d+(?:,\d*)?\}").match(header, end)
    cut = header[: quantifier.end() if quantifier else end]
    return re.sub(r"\(\?P<(?!time>)\w+>", "(?:", cut)


def groups_of(regex: str) -> list[tuple[int, int]]:
    """Return where every group begins and ends."""
    opened: list[int] = []
    groups: list[tuple[int, int]] = []
    for part in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", regex, re.DOTALL):
        if part[0] == "(":
            opened.append(part.start())
        elif part[0] == ")":
            groups.append((opened.pop(), part.end()))
    return groups


def _end_of_group(regex: str, start: int) -> int:
    return next(end for begin, end in groups_of(regex) if begin == start)


def _either(regexes: Sequence[str]) -> str:
    return "|".join(f"(?:{regex})" for regex in regexes)
