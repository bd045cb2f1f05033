"""Skimming: of many lines of one source, which ones can matter. Pure; a block that is left out would have said nothing.

An event may be left out when its header is certain (a stamp in one of two layouts that nothing wraps and every event of which
begins), its lines hold no sign of anything looked for, it has a header behind it, and it is neither the first nor the last of
a run: events in order within one minute, of whose times only the ends count (engine/match/heard). Text that does not look like
this throughout is not skimmed at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.correlate.bindings import SIGHTINGS
from engine.match.gate import Hit, Screen
from engine.model.records import RawLine
from engine.model.rules import Format
from engine.parse import unwrap_line
from engine.parse.decoding import ESCAPED
from engine.parse.headers import header_book
from engine.ports import Chunk

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]

ENOUGH_LINES = 64  # below this, arrays cost more than they save

_NEWLINE = 10
_STAMP = b"0000-00-00 00:00:00,000"  # what the two layouts share: `[stamp] ` of log4j's PatternLayout, and `stamp ` without
_MINUTE = 16  # bytes of it up to the minute
_DIGITS = np.array([at for at, char in enumerate(_STAMP) if char == ord("0")])
_MARKS = np.array([at for at, char in enumerate(_STAMP) if char != ord("0")])
_MARKED = np.frombuffer(_STAMP, np.uint8)[_MARKS]
_MILLIS = 19  # where the comma stands; a point is as good
_SECONDS = np.array([17, 18, 20, 21, 22])
_WEIGHTS = np.array([10_000, 1_000, 100, 10, 1])
_WIDTH = len(_STAMP) + 2  # with brackets, or a blank and the character behind it
_SURE = (b"\tat ", b"\t... ", b"Caused by: ")  # continuations that no layout and no wrapper begins like
# the parser changes a text that holds one of these, so that more may match in it than in the bytes
_CHANGED = (b"\x1b", b"\x00", b"\x0b", b"\x0c", b"\r", *(sign.encode() for sign in ESCAPED))


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text: where each begins, and where the text ends."""

    text: bytes
    starts: Numbers

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> bytes:
        """Return a line without its line end."""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[self.starts[number] : end].rstrip(b"\r\n")


class Skimmer:
    """Skims one source, piece after piece."""

    def __init__(self, screen: Screen, formats: Sequence[Format]) -> None:
        self._screen, self._formats = screen, formats
        self._said: Counter[tuple[bytes, ...]] = Counter()

    def worth_reading(self, chunks: Sequence[Chunk]) -> Iterator[RawLine]:
        """Yield the lines of `chunks`, of the one source and in order, that have to be read."""
        lines = lines_of(b"".join(chunk.data if chunk.data.endswith(b"\n") else chunk.data + b"\n" for chunk in chunks))
        kept = self._kept(lines)
        if kept is None:
            yield from (raw for chunk in chunks for raw in raw_lines(chunk))
            return
        begins = np.cumsum([0, *(len(chunk.data) + (not chunk.data.endswith(b"\n")) for chunk in chunks)])
        firsts = np.searchsorted(lines.starts, begins)
        for number in np.flatnonzero(kept).tolist():
            start = int(lines.starts[number])
            at = int(np.searchsorted(begins, start, side="right")) - 1
            chunk = chunks[at]
            place = chunk.number + number - int(firsts[at]) if chunk.number else 0
            offset, value = chunk.offset + start - int(begins[at]), lines.line(number)
            yield RawLine(chunk.source_id, offset, value, place, chunk.ingested_at, chunk.labels)

    def _kept(self, given: Lines) -> Flags | None:
        """Return which lines have to be read; None: all of them."""
        if len(given) < ENOUGH_LINES or not self._screen.complete or any(sign in given.text for sign in _CHANGED):
            return None
        lines = _in_ascii(given)
        stamps, stamped = _stamps(lines)
        heads = np.flatnonzero(stamped)
        if len(heads) < ENOUGH_LINES // 2 or self._strange(lines, stamped):
            return None
        blocks = _ends_of_runs(stamps[heads])
        blocks[self._bearing(lines, heads)] = True
        return _lines_of_blocks(blocks, heads, len(lines))

    def _bearing(self, lines: Lines, heads: Numbers) -> Numbers:
        """Return the blocks that may bear something which is not known yet."""
        hits = self._screen.hits(lines.text)
        if not hits:
            return np.empty(0, np.intp)
        ends = np.array([hit.end for hit in hits]) - 1
        blocks = np.searchsorted(lines.starts[heads], ends, side="right") - 1
        order = np.argsort(blocks, kind="stable")
        borders = np.flatnonzero(np.diff(blocks[order])) + 1
        groups = np.split(order, borders)
        return np.array([blocks[group[0]] for group in groups if self._counts([hits[at] for at in group])], np.intp)

    def _counts(self, hits: Sequence[Hit]) -> bool:
        said = tuple(hit.said for hit in hits)
        if not all(said):
            return True
        self._said[said] += 1
        return self._said[said] <= SIGHTINGS

    def _strange(self, lines: Lines, stamped: Flags) -> bool:
        """Tell whether a line without a certain header may be anything but the continuation of an event."""
        others = np.flatnonzero(~stamped).tolist()
        return any(not _continues(lines.line(at), self._formats) for at in others)


def lines_of(text: bytes) -> Lines:
    """Return the lines of `text`."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _NEWLINE) + 1
    starts = np.concatenate((np.zeros(1, np.intp), ends))
    return Lines(text, starts[:-1] if starts[-1] == len(text) else starts)


def raw_lines(chunk: Chunk) -> Iterator[RawLine]:
    """Yield the lines of a chunk, as a file's reader would."""
    offset, number = chunk.offset, chunk.number
    for line in _split(chunk.data):
        yield RawLine(chunk.source_id, offset, line.rstrip(b"\r\n"), number, chunk.ingested_at, chunk.labels)
        offset += len(line)
        number += 1 if number else 0


def _split(data: bytes) -> list[bytes]:
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _in_ascii(lines: Lines) -> Lines:
    """Return the same lines with a question mark for every other character: a sign's byte is a text's character."""
    text = lines.text
    return lines if text.isascii() else lines_of(text.decode("utf-8", "replace").encode("ascii", "replace"))


def _stamps(lines: Lines) -> tuple[Bytes, Flags]:
    """Return for each line the bytes where its stamp would be, and whether it has one."""
    padded = np.frombuffer(lines.text + b"\n" * (_WIDTH + 1), np.uint8)
    bracketed = padded[lines.starts] == ord("[")
    stamps = padded[(lines.starts + bracketed)[:, None] + np.arange(_WIDTH)]
    marks = stamps[:, _MARKS]
    marks[:, _MARKS == _MILLIS] = np.where(marks[:, _MARKS == _MILLIS] == ord("."), ord(","), marks[:, _MARKS == _MILLIS])
    right = ((stamps[:, _DIGITS] - ord("0")) < 10).all(1) & (marks == _MARKED).all(1) & (stamps[:, _SECONDS[0]] < ord("6"))
    behind, next_ = stamps[:, _WIDTH - 2], stamps[:, _WIDTH - 1]
    bare = (behind == ord(" ")) & (next_ != ord("+")) & (next_ != ord("-"))  # a zone may follow there
    closed = (behind == ord("]")) & (next_ == ord(" "))
    return stamps, right & np.where(bracketed, closed, bare)


def _continues(line: bytes, formats: Sequence[Format]) -> bool:
    if line.startswith(_SURE):
        return True
    record = unwrap_line(RawLine("", 0, line, 0), formats)
    plain = record.source_id == "" and not record.starts and not record.partial and record.text.encode() == line
    return plain and header_book(formats).find(record.text) is None


def _ends_of_runs(stamps: Bytes) -> Flags:
    """Return which of the events are the first or the last of a run."""
    minutes = stamps[:, :_MINUTE]
    times = (stamps[:, _SECONDS].astype(np.int64) - ord("0")) @ _WEIGHTS
    breaks = (minutes[1:] != minutes[:-1]).any(1) | (times[1:] < times[:-1])
    edges = np.ones(len(stamps) + 1, np.bool_)
    edges[1:-2] = breaks[:-1]  # the last one is a run by itself: it may go on in the text behind, and is judged there
    return edges[1:] | edges[:-1]


def _lines_of_blocks(blocks: Flags, heads: Numbers, count: int) -> Flags:
    """Return which of `count` lines are in front of the first head, or in a block that is to be read."""
    lengths = np.diff(np.append(heads, count))
    return np.concatenate((np.ones(heads[0], np.bool_), np.repeat(blocks, lengths)))
