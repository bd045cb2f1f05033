"""layouts: the layout of each line of an array, that of the lowest rank that matches it, as in engine/parse/headers.

Only layouts that occurred before are tried one by one, so that the cost depends on the layouts of the log and not on how many
there are. A line that any other layout may match goes to the parser, and that layout is tried from then on. Which layouts
occurred changes the speed, never a result.
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

PROBED = 64  # lines in layouts that did not occur before, which the parser reads together
NONE = -1

Layouts = npt.NDArray[np.int16]


class Recogniser:
    """Finds the layout of lines as a number: the index in `formats`, or NONE for a line that is no header.

    Attributes:
        formats: all layouts, lowest rank first.
        first_generic: the number of the first generic layout: these match any line with a stamp, also one with a wrapper.
    """

    def __init__(self, formats: Sequence[Format]) -> None:
        self._book: HeaderBook = header_book(formats)
        self.formats = self._book.formats
        self.first_generic = sum(layout.rank < GENERIC_RANK for layout in self.formats)
        self._learnt: list[int] = []
        self._heads: dict[int, str] = {}

    def layouts(self, lines: pa.StringArray) -> Layouts:
        """Return the layout of each line. `lines` have no line ends."""
        layouts = np.full(len(lines), NONE, np.int16)
        rows = np.arange(len(lines))
        while len(rows):
            rows, lines = self._by_learnt(lines, rows, layouts)
            if not len(rows):
                break
            fits = matching(lines, self._any)
            rows, lines = rows[fits], lines.filter(mask_of(fits))
            self._learn(lines[:PROBED])
        return layouts

    def is_header(self, line: str) -> bool:
        """Return whether a line is the header of an event in any layout."""
        return self._book.find(line) is not None

    def in_specific_layout(self, texts: pa.StringArray) -> Flags:
        """Return which texts match a layout that is not generic. Such a line has no wrapper."""
        return matching(texts, _either([layout.header for layout in self.formats[: self.first_generic]]))

    @cached_property
    def _any(self) -> str:
        return _either([layout.header for layout in self.formats])

    def _by_learnt(self, lines: pa.StringArray, rows: Integers, layouts: Layouts) -> tuple[Integers, pa.StringArray]:
        """Set the layout of lines that a learnt layout matches; return the rows and texts of the others."""
        for index in sorted(self._learnt):
            if not len(rows):
                break
            fits = matching(lines, self.formats[index].header)
            if not fits.any():
                continue
            layouts[rows[fits]] = index
            self._prefer_lower(lines.filter(mask_of(fits)), rows[fits], index, layouts)
            rows, lines = rows[~fits], lines.filter(mask_of(~fits))
        return rows, lines

    def _prefer_lower(self, lines: pa.StringArray, rows: Integers, index: int, layouts: Layouts) -> None:
        """Correct the layout of lines that a layout of lower rank matches too, if that one is not learnt yet."""
        lower = [self.formats[number].header for number in range(index) if number not in self._learnt]
        ambiguous = np.flatnonzero(matching(lines, _either(lower))) if lower else np.zeros(0, np.int64)
        if not len(ambiguous):
            return
        texts, count = lines.take(index_of(ambiguous)), len(self._learnt)
        self._learn(texts[:PROBED])
        has_learnt = len(self._learnt) > count
        layouts[rows[ambiguous]] = self.layouts(texts) if has_learnt else [self._number(line) for line in texts.to_pylist()]

    def _learn(self, lines: pa.StringArray) -> None:
        for line in lines.to_pylist():
            number = self._number(line)
            if number != NONE and number not in self._learnt:
                self._learnt.append(number)

    def _number(self, line: str) -> int:
        layout = self._book.find(line)
        return NONE if layout is None else self.formats.index(layout)

    @cached_property
    def digit_sensitive(self) -> Layouts:
        """The layouts whose expression names single digits: texts that are equal except for digits may differ in layout."""
        return np.array([n for n, layout in enumerate(self.formats) if widened(layout.header) != layout.header], np.int16)

    @cached_property
    def label_sharing(self) -> Layouts:
        """The layouts whose lines pass labels to lines of other layouts below them, and these other layouts."""
        takers = {name for layout in self.formats for name in layout.carries}
        return np.array([n for n, layout in enumerate(self.formats) if layout.carries or layout.name in takers], np.int16)

    def level_span(self, line: bytes) -> tuple[int, int]:
        """Return the start and end byte of the level of a line in a digit-sensitive layout; (0, 0) when it has no level."""
        for number in self.digit_sensitive.tolist():
            match = expression(self.formats[number].header).match(line)
            if match is not None and "level" in match.re.groupindex:
                start, end = match.span(match.re.groupindex["level"])  # re2 takes no names here
                return max(start, 0), max(end, 0)
        return 0, 0

    def head(self, index: int) -> str:
        """Return the beginning of a header, up to its stamp, as an expression for `extract_regex`; "" when it has no stamp."""
        if index not in self._heads:
            self._heads[index] = head_of(self.formats[index].header)
        return self._heads[index]


def matching(lines: pa.StringArray, regex: str) -> Flags:
    """Return which lines an expression matches anywhere."""
    flags: Flags = flags_of(pc.match_substring_regex(lines, regex))
    return flags


def head_of(header: str) -> str:
    """Return the beginning of a header: up to the end of the outermost group that contains its stamp.

    No group but the stamp has a name. "" when the header has no stamp.
    """
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
    """Return the start and end of every group of an expression, inner groups first."""
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
