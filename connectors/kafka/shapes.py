"""Shapes of shippers' documents: all that is equal in those about one file, but for the digits in some places. Pure.

Most shippers write the same document around every line, with another offset or time in it. Once some were read, the lines of
those of their shape are cut out of hundreds at once; that they are of it proves that whoever reads them finds the same in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

A = TypeVar("A")

MOST = 64  # shapes that are known at once
LONGEST = 4096  # bytes of what stands around a line
VAIN, SELDOM = 20, 20  # lists that nothing learnt was of use to, behind which only each so many-th is learnt from

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DIGITS = re.compile(rb"(\d+)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b'"': b'"', b"/": b"/"}

Lines = tuple[bytes, Sequence[int] | None]  # and how many bytes each document has of them, None where each has one line


class Shape(Struct, Generic[A], frozen=True, dict=True):
    """What stands between the lines of two documents that say the same `about` them: texts and, at the odd places, digits.

    It is what is behind a line, a line end, and what is before a line. At the places `varying` the digits may be any.
    """

    about: A
    between: tuple[bytes, ...]
    varying: frozenset[int] = frozenset()

    def fits(self, value: bytes) -> bool:
        """Tell whether a document seems to be of this shape: its line is not looked at."""
        return self._whole.fullmatch(value) is not None

    def lines_in(self, values: Sequence[bytes]) -> Lines | None:
        """Return the lines of documents, with their line ends; None where one is of another shape, or seldom like."""
        behind, _, before = b"".join(self.between).partition(b"\n")
        cut, borders = self._between.subn(b"\n", b"\n".join((behind, *values, before)))
        # a border before each document and one behind the last; that no control character is left proves that each is one
        if borders != len(values) + 1 or np.count_nonzero(np.frombuffer(cut, np.uint8) < ord(" ")) != borders:
            return None
        return _lines(cut[1:]) if _is_utf8(cut) else None

    def widened(self, other: Shape[A]) -> Shape[A] | None:
        """Return the shape of the documents of both; None when they differ in more than digits."""
        if self.about != other.about or self.between[::2] != other.between[::2]:
            return None
        both = enumerate(zip(self.between, other.between, strict=True))
        varying = self.varying | other.varying | {place for place, (this, that) in both if this != that}
        return self if varying == self.varying else Shape(self.about, self.between, varying)

    @cached_property
    def _between(self) -> re.Pattern[bytes]:
        return re.compile(b"\n".join(self._expressions))

    @cached_property
    def _whole(self) -> re.Pattern[bytes]:
        behind, before = self._expressions
        return re.compile(b"(?s)%b.*%b" % (before, behind))

    @cached_property
    def _expressions(self) -> tuple[bytes, bytes]:
        """What is behind a line, and what is before one."""
        behind, _, before = b"".join(self._parts()).partition(re.escape(b"\n"))
        return behind, before

    def _parts(self) -> Iterator[bytes]:
        in_text = True  # a line is
        for place, part in enumerate(self.between):
            if place % 2 == 0:
                in_text ^= part.count(b'"') % 2 == 1
                yield re.escape(part)
            else:
                yield _any_digits(self.between[place - 1], in_text) if place in self.varying else part


class Shapes(Generic[A]):
    """The shapes that were learnt lately."""

    def __init__(self) -> None:
        self._known: list[Shape[A]] = []
        self._vain = 0  # lists of documents since a shape was of use

    def cut(self, values: Sequence[bytes]) -> tuple[Lines, A] | None:
        """Return the lines of documents and what all say about them; None where they are not all of one known shape."""
        some = values[0], values[-1], values[len(values) // 2]  # what has changed on the way is found sooner in fewer
        shape = next((shape for shape in self._known if all(map(shape.fits, some))), None)
        lines = shape.lines_in(values) if shape is not None else None
        if shape is None or lines is None:
            self._vain += 1
            return None
        self._vain = 0
        return lines, shape.about

    def learn(self, values: Sequence[bytes], about: A) -> None:
        """Learn the shapes of documents that all say `about` their lines; those learnt longest ago are forgotten when they are
        too many. Where that has been in vain for long it is tried now and then only."""
        if self._vain <= VAIN or self._vain % SELDOM == 0:
            for value in {values[0], values[-1]}:
                shape = shape_around(value, about)
                if shape is not None:
                    self._known = [self._taken_out(shape), *self._known][:MOST]

    def _taken_out(self, shape: Shape[A]) -> Shape[A]:
        """Return the known shape that is also this one, which is known no more; else this one."""
        for at, known in enumerate(self._known):
            if (widened := known.widened(shape)) is not None:
                del self._known[at]
                return widened
        return shape


def shape_around(value: bytes, about: A) -> Shape[A] | None:
    """Return the shape of a document; None where nobody can be sure where in it the line is, or what is around that is no plain
    text. Raises msgspec's DecodeError for what is no document."""
    raw = _RAW.decode(value)
    line = bytes(raw.get("message", raw.get("log", b"")))
    before, found, behind = value.partition(line or b"\n")
    around = b'"%b\n%b"' % (behind, before)
    if not found.startswith(b'"') or line in before + behind or len(around) > LONGEST:
        return None
    if around.count(b"\n") > 1 or b"\\" in around:
        return None
    return Shape(about, tuple(_DIGITS.split(around)))


def _any_digits(before: bytes, in_text: bool) -> bytes:
    """Return the expression of digits behind `before`: a number's first is no 0, unless it is the only one."""
    fraction = before.endswith((b".", b"e", b"E", b"+", b"e-", b"E-"))
    return rb"\d++" if in_text or fraction else rb"(?:0|[1-9]\d*+)"


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _lines(escaped: bytes) -> Lines | None:
    """Return lines as they were before they became part of JSON, each with its line end; None for what is no text in it."""
    parts = escaped.split(b"\\")
    if not any(part.startswith(b"n") for part in parts):
        data = _unescaped(parts)
        return None if data is None else (data, None)
    found = [_unescaped(line.split(b"\\")) for line in escaped[:-1].split(b"\n")]
    ended = [line if line.endswith(b"\n") else line + b"\n" for line in found if line is not None]
    return (b"".join(ended), list(map(len, ended))) if len(ended) == len(found) else None


def _unescaped(parts: Sequence[bytes]) -> bytes | None:
    """Return what a JSON text with backslashes between `parts` holds; None where it holds what is seldom or never there."""
    found, quotes, escapes = [parts[0]], 0, True
    for part in parts[1:]:
        if not escapes:  # the backslash before it was escaped itself
            found.append(part)
            escapes = True
        elif not part:
            found.append(b"\\")
            escapes = False
        elif (letter := _ESCAPED.get(part[:1])) is None:
            return None
        else:
            quotes += letter == b'"'
            found += (letter, part[1:])
    quoted = sum(part.count(b'"') for part in parts if b'"' in part)
    return b"".join(found) if escapes and quotes == quoted else None
