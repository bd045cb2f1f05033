"""The lines of a text of bytes: where each begins."""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.match.digits import ALIKE
from engine.model.records import Record
from engine.parse.headers import level_of

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
# of a line: the position of its first byte in the source, its number (0: unknown), and its origin (empty: none)
Place: TypeAlias = tuple[int, int, str]

BEGINNING = 48  # bytes of a line that are looked at side by side with those of all others: more than a stamp takes

_NEWLINE = 10


class Lines(Struct, frozen=True, dict=True):
    """The lines of a text: where each begins, and where the text ends."""

    text: bytes
    starts: Numbers

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> bytes:
        """Return a line without its line end."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip(b"\r\n")

    def data(self, start: int, end: int) -> bytes:
        """Return the bytes of the lines from `start` to `end`, with their line ends."""
        return self.text[self.begins[start] : self.begins[end]]

    def data_alike(self, start: int, end: int) -> bytes:
        """Return what `data` would if every digit were 0."""
        return self.alike[self.begins[start] : self.begins[end]]

    @cached_property
    def alike(self) -> bytes:
        """The text with every digit a 0."""
        return self.text.translate(ALIKE)

    @cached_property
    def begins(self) -> list[int]:
        """Where each line begins, and where the last one ends: for one after the other a list is faster than an array."""
        return [*self.starts.tolist(), len(self.text)]

    def some(self, numbers: Numbers) -> list[bytes]:
        """Return some of the lines without their line ends."""
        spans = zip(self.starts[numbers].tolist(), self.ends()[numbers].tolist(), strict=True)
        return [self.text[start:end].rstrip(b"\r\n") for start, end in spans]

    def owners(self, heads: Numbers, ends: Numbers) -> Numbers:
        """Return which of the stretches that begin at the lines `heads` each of some places ends in; -1: before the first."""
        return np.searchsorted(self.starts[heads], ends - 1, side="right") - 1

    def ends(self) -> Numbers:
        """Return where each line ends, behind its line end."""
        return np.append(self.starts[1:], len(self.text))

    def beginnings(self) -> Bytes:
        """Return a row of BEGINNING bytes for each line: its first ones, and whatever follows; zeros behind the text."""
        return self.windows(self.starts, BEGINNING)

    def windows(self, places: Numbers, width: int) -> Bytes:
        """Return a row of `width` bytes for each of some places in the text: those from there on; zeros behind the text."""
        if not width:
            return np.empty((len(places), 0), np.uint8)
        padded = self.text + bytes(width)
        windows = np.ndarray((len(self.text) + 1,), f"V{width}", padded, 0, (1,))
        return windows[places].view(np.uint8).reshape(-1, width)


def lines_of(text: bytes) -> Lines:
    """Return the lines of `text`."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    starts = np.concatenate((np.zeros(1, np.int64), ends))
    return Lines(text, starts[:-1] if starts[-1] == len(text) else starts)


def searched(record: Record) -> bytes:
    """Return the text of a record as it is searched, a line; the level that a document names stands above its text."""
    above = f"{level_of(record.fields.get('level', ''))}\n" if record.fields else ""
    return f"{above}{record.text}\n".encode("ascii", "replace")
