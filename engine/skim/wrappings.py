"""Wrappings: what a runtime puts around each line in the same words but for a stamp, taken off all lines side by side.

Compose's `worker-1  | `, a pod's name, the stamp of a container runtime, Docker's JSON, any of them in another. What a wrapping
is made of is seen where the parser takes it off a line; whether it is taken off every line alike is asked of the parser, with
lines that try to look like something else. A line that bears none of those known is unwrapped by the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from engine.model.records import NO_LABELS, Labels, RawLine, Record
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.headers import header_book
from engine.skim.layouts import ANY_TIME, CONTINUATIONS, DOUBTFUL_ENDINGS, ENDINGS, Layout
from engine.skim.lines import Bytes, Flags, Lines, Numbers, lines_of

LEARNT = 40  # lines of a text from which a wrapping may be learnt
LONGEST = 400  # bytes of a wrapping, on either side

_STAMP = re.compile(rb"(?:20\d\d-\d\d-\d\dT|[ \d]\d )\d\d:\d\d:\d\d(?:\.\d{1,9})?")
_CENTURY = 2  # digits of a year that are always the same


class _Places(Struct, frozen=True):
    """Where in a wrapping which characters must stand, and where any digit may."""

    fixed: Numbers
    characters: Bytes
    free: Numbers


class Wrapping(Struct, frozen=True, dict=True):
    """What stands before and behind a line, with one digit for all those of its stamps; and the name of the container, as
    source ids end with it, "" when the wrapping names none. `quoted`: the line is a string of JSON."""

    before: bytes
    behind: bytes
    container: str

    @property
    def quoted(self) -> bool:
        """Whether the line is a string of JSON; what else stands behind a line is not known."""
        return bool(self.behind)

    def around(self, line: bytes) -> bytes:
        """Return a line in this wrapping; one that is quoted is the inside of its string."""
        return self.before + line + self.behind

    def fits(self, lines: Lines, some: Numbers) -> Flags:
        """Return which of some lines are in it."""
        starts, ends = lines.starts[some], lines.ends()[some] - 1
        right = ends - starts >= len(self.before) + len(self.behind)
        for places, begins in ((self._before, starts), (self._behind, ends - len(self.behind))):
            rows = lines.windows(np.maximum(begins, 0), len(places.fixed) + len(places.free))
            digits = rows[:, places.free]
            right &= (rows[:, places.fixed] == places.characters).all(1)
            right &= ((digits >= ord("0")) & (digits <= ord("9"))).all(1)
        return right

    @cached_property
    def _before(self) -> _Places:
        return _places(self.before)

    @cached_property
    def _behind(self) -> _Places:
        return _places(self.behind)


BARE = Wrapping(b"", b"", "")  # around a line as it stands


class Peeled(Struct, frozen=True):
    """The lines of one source with their wrappers off: `numbers` are those they have in the text, `which` those of their
    wrappings and of the labels that these give, -1 where the parser took it off. Those that are `odd` may be anything."""

    source_id: str
    lines: Lines
    numbers: Numbers
    which: Numbers
    wrappings: Sequence[Wrapping]
    labelled: Sequence[Labels]
    odd: Flags

    def wrapping(self, number: int) -> Wrapping | None:
        """Return what stood around a line; None when the parser took it off."""
        which = int(self.which[number])
        return self.wrappings[which] if which >= 0 else None


def wrapping_of(line: bytes, formats: Sequence[Format]) -> tuple[Wrapping, bytes] | None:
    """Return what stands around the line of a program in `line`, and that line; None when nothing does."""
    record = _unwrapped(line, formats)
    text = record.text.encode()
    if not text or not _is_line(record) or line.count(text) != 1:
        return None
    before, _, behind = line.partition(text)
    around = Wrapping(_with_one_digit(before), _with_one_digit(behind), record.source_id)
    return (around, text) if 0 < len(before) + len(behind) <= LONGEST else None


def is_certain(wrapping: Wrapping, layout: Layout, formats: Sequence[Format]) -> bool:
    """Tell whether the parser makes of lines of `layout` in `wrapping`, and of a trace below, what it makes of them alone."""
    example = layout.example.decode()
    probes = (*(example + ending for ending in (*ENDINGS, *DOUBTFUL_ENDINGS)), *(begun + "x" for begun in CONTINUATIONS))
    alone = (replace(_unwrapped(probe.encode(), formats), labels=NO_LABELS, at=None) for probe in probes)
    return all(_taken_off(wrapping, probe, formats) == record for probe, record in zip(probes, alone, strict=True))


def goes_on(wrapping: Wrapping, line: bytes, formats: Sequence[Format]) -> bool:
    """Tell whether `line` in `wrapping` is sure to be no more than the continuation of an event that began with a header."""
    text = line.decode("utf-8", "replace")
    record = _taken_off(wrapping, text, formats)
    return _is_line(record) and not record.source_id and record.text == text and header_book(formats).find(text) is None


def peeled(
    lines: Lines, source_id: str, learn: Callable[[bytes], Wrapping | None], read: Callable[[int], Record]
) -> Sequence[Peeled] | None:
    """Return `lines` by source, with their wrappers off; None when that is better left to the parser.

    Args:
        learn: returns the wrapping of a line, None when it is not certain to be taken off others alike.
        read: returns the record of a line, by number.
    """
    taken = _Taken(lines, source_id, read)
    tried = 0
    while tried < min(LEARNT, len(taken.left)):
        found = learn(lines.line(int(taken.left[tried])))
        if found is None or not taken.take(found):
            tried += 1
    if len(taken.left) * 2 > len(lines):
        return None
    taken.read()
    return taken.by_source() if taken.sources_are_known() else None


class _Taken:
    """The lines of a text that lose their wrappers, one wrapping after the other. `left` are those that still have theirs."""

    def __init__(self, lines: Lines, source_id: str, read: Callable[[int], Record]) -> None:
        self._lines, self._source_id, self._read = lines, source_id, read
        self._inner: list[bytes] = [b""] * len(lines)
        self._sources = {source_id: 0}
        self._whose = np.zeros(len(lines), np.int64)
        self._wrappings: list[Wrapping] = []
        self._labels: list[Labels] = []
        self._which = np.full(len(lines), -1)
        self._odd = np.zeros(len(lines), np.bool_)
        self.left = np.arange(len(lines))

    def take(self, wrapping: Wrapping) -> bool:
        """Take `wrapping` off all lines in it, and tell whether there are any."""
        fit = wrapping.fits(self._lines, self.left)
        if wrapping.quoted:
            fit &= ~self._controls[self.left]
        some = self.left[fit]
        if not len(some):
            return False
        self.left = self.left[~fit]
        self._which[some] = len(self._wrappings)
        self._wrappings.append(wrapping)
        self._labels.append(self._read(int(some[0])).labels)
        self._whose[some] = self._sources.setdefault(self._source_id + wrapping.container, len(self._sources))
        begins = (self._lines.starts[some] + len(wrapping.before)).tolist()
        ends = (self._lines.ends()[some] - 1 - len(wrapping.behind)).tolist()
        text = self._lines.text
        for number, begin, end in zip(some.tolist(), begins, ends, strict=True):
            self._inner[number] = text[begin:end]
        if wrapping.quoted:
            self._unquote(some)
        return True

    def read(self) -> None:
        """Let the parser take off what is left."""
        for number in self.left.tolist():
            record = self._read(number)
            self._whose[number] = self._sources.setdefault(record.source_id, len(self._sources))
            self._inner[number] = record.text.replace("\n", " ").encode()
            self._odd[number] = not _is_line(record)

    def sources_are_known(self) -> bool:
        """Tell whether no line may be of another source that there is: one that names no container may hold another's line."""
        return len(self._sources) == 1 or all(wrapping.container for wrapping in self._wrappings)

    def by_source(self) -> Sequence[Peeled]:
        """Return what was taken."""
        found = []
        for source_id, whose in self._sources.items():
            numbers = np.flatnonzero(self._whose == whose)
            if len(numbers):
                text = b"\n".join([self._inner[number] for number in numbers.tolist()]) + b"\n"
                which, odd = self._which[numbers], self._odd[numbers]
                odd[1:] |= odd[:-1]  # what is only a part goes on in the next line
                found.append(Peeled(source_id, lines_of(text), numbers, which, self._wrappings, self._labels, odd))
        return found

    @cached_property
    def _controls(self) -> Flags:
        """Which lines hold what no string of JSON may hold as it is."""
        characters = np.frombuffer(self._lines.text, np.uint8)
        places = np.flatnonzero((characters < ord(" ")) & (characters != ord("\n")))
        held = np.zeros(len(self._lines), np.bool_)
        held[np.searchsorted(self._lines.starts, places, side="right") - 1] = True
        return held

    def _unquote(self, some: Numbers) -> None:
        """Take lines out of their strings. What holds a quotation mark of its own is no string."""
        for number in some.tolist():
            inner = self._inner[number]
            if b"\\" in inner or b'"' in inner:
                self._inner[number], self._odd[number] = _unquoted(inner)


def _unquoted(inside: bytes) -> tuple[bytes, bool]:
    """Return what a string of JSON says, and whether that may be anything but one line."""
    try:
        text: str = json.loads(f'"{inside.decode("utf-8", "replace")}"')
    except ValueError:
        return b"", True
    return text.replace("\n", " ").encode("utf-8", "replace"), "\n" in text


def _places(example: bytes) -> _Places:
    stamps = (range(found.start() + _CENTURY, found.end()) for found in _STAMP.finditer(example))
    free = [at for stamp in stamps for at in stamp if example[at : at + 1].isdigit()]
    fixed = [at for at in range(len(example)) if at not in free]
    return _Places(np.array(fixed, np.int64), np.array([example[at] for at in fixed], np.uint8), np.array(free, np.int64))


def _with_one_digit(text: bytes) -> bytes:
    def alike(found: re.Match[bytes]) -> bytes:
        return found[0][:_CENTURY] + found[0][_CENTURY:].translate(ANY_TIME)

    return _STAMP.sub(alike, text)


def _unwrapped(line: bytes, formats: Sequence[Format]) -> Record:
    return unwrap_line(RawLine("", 0, line, 0), formats)


def _is_line(record: Record) -> bool:
    """Tell whether a record is a line of a program, and its wrapper has nothing to say of it but who printed it and when."""
    return not (record.starts or record.partial or record.cut or record.fields or "\n" in record.text)


def _taken_off(wrapping: Wrapping, line: str, formats: Sequence[Format]) -> Record:
    """Return the record of a line in `wrapping`, without what the wrapping says of all lines in it."""
    inside = json.dumps(line, ensure_ascii=False)[1:-1] if wrapping.quoted else line
    record = _unwrapped(wrapping.around(inside.encode()), formats)
    source_id = record.source_id.removeprefix(wrapping.container) if wrapping.container else record.source_id
    return replace(record, source_id=source_id, labels=NO_LABELS, at=None)
