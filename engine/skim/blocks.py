"""The events of a text whose headers are certain, and which of them have to be read, whatever is looked for.

An event may be left out when it holds no sign of anything looked for, and is neither the first nor the last of its text, nor
beside a pause, nor anywhere near what may be something else. Its time counts all the same: it lies between those of events that
are read, or a span says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from datetime import datetime
from functools import lru_cache

import numpy as np
from msgspec import Struct

from engine.model.matches import SEEN_GAP_S, ActivitySpan
from engine.parse.open_block import BLOCK_BYTES, BLOCK_LINES
from engine.skim.lines import Flags, Lines, Numbers
from engine.skim.screen import Screen

_GAP_US = int(SEEN_GAP_S * 1_000_000)
Words = tuple[bytes, ...]  # what is said, in several places together where it is several things, and where
_NAME = re.compile(rb"[A-Za-z0.$]+")  # words, loggers and threads, with their digits put to 0
_REMEMBERED_BYTES = 256  # of the beginning of a line: more than any header takes
_WIDEST = 4  # bytes of UTF-8 that one byte of a searched text may stand for


class Blocks(Struct, frozen=True):
    """The events of a text, two at least.

    `lines` is the text as it is searched, `heads` are the lines that events begin at, `at_us` their times in microseconds on a
    clock that is never put forward or back, and `time` returns that of one as the parser reads it. `strange` tells which may be
    anything but one event, so that those beside them have to be read too.
    """

    lines: Lines
    heads: Numbers
    at_us: Numbers
    strange: Flags
    time: Callable[[int], datetime | None]

    def anyway(self) -> Flags:
        """Return which blocks have to be read even if they bear nothing."""
        kept = self._at_ends() | self._too_long() | self.strange
        kept[1:] |= self.strange[:-1]  # the event behind may be joined to what is strange, or be apart from it in time
        kept[:-1] |= self.strange[1:]  # what is strange may go on with the event before
        return kept

    def said(self, screen: Screen, known: Set[Words]) -> Iterator[tuple[int, Words | None]]:
        """Yield which blocks may bear something, and the words that are known once they were said a few times; None when
        something else may be borne, which counts each time (see match/screen). What only says what is `known` is left out.
        """
        text, begins = self.lines.text, self.lines.starts[self.heads].tolist()
        for block, borne in screen.bearing(self.lines.alike, begins):
            at, named = begins[block], borne.named
            if borne.counts:
                yield block, None
                continue
            stretches = [text[at + start : at + end] for start, end in named]
            words = (*self._surroundings(at, named[0][0]), *stretches)
            if words not in known:
                yield block, words

    def _surroundings(self, at: int, start: int) -> tuple[bytes, bytes]:
        """Return the shape of what stands before the words that begin `start` behind `at`, where an event begins, and the
        logger at the end of its first line: words that do not begin the message, or of another logger, are another's."""
        alike = self.lines.alike
        end = alike.find(b"\n", at + start)
        line = alike[at : end if end >= 0 else len(alike)].rstrip()
        shape = _shape if start <= _REMEMBERED_BYTES else _shape.__wrapped__
        return shape(line[:start]), line[line.rfind(b"(") :] if line.endswith(b")") else b""

    def lines_in(self, some: Flags) -> Flags:
        """Return which lines are in the blocks `some`, or before the first."""
        sizes = np.diff(np.append(self.heads, len(self.lines)))
        return np.concatenate((np.ones(int(self.heads[0]), np.bool_), np.repeat(some, sizes)))

    def spans(self, source_id: str, kept: Flags) -> dict[int, ActivitySpan]:
        """Return the spans of what is left out, each by the line that the block begins at which is read next.

        What lies between two events that are read, in order and without a pause, adds nothing to their times; of the last event
        nobody knows whether it ends here, so whether it will be heard of now.
        """
        read = np.flatnonzero(kept)
        before, after = read[:-1], read[1:]
        apart = after - before > 1
        before, after = before[apart], after[apart]
        if not len(before):
            return {}
        at = self.at_us
        borders = np.stack((before + 1, after), axis=1).ravel()
        first, last = np.minimum.reduceat(at, borders)[::2], np.maximum.reduceat(at, borders)[::2]
        between = (after < read[-1]) & (at[before] <= first) & (last <= at[after]) & (at[after] - at[before] < _GAP_US)
        runs = [(int(before[each]) + 1, int(after[each])) for each in np.flatnonzero(~between)]
        found = {int(self.heads[end]): self._span(source_id, start, end) for start, end in runs}
        return {line: span for line, span in found.items() if span is not None}

    def _span(self, source_id: str, start: int, end: int) -> ActivitySpan | None:
        run = self.at_us[start:end]
        first, last = (self.time(start + int(at)) for at in (run.argmin(), run.argmax()))
        return None if first is None or last is None else ActivitySpan(source_id, first, last)

    def _at_ends(self) -> Flags:
        """Return which blocks are the first or the last of their text, or of a run without a pause.

        The text before may have ended in a part of a line: then the first header is none, and the second event is the first.
        """
        pauses = np.abs(np.diff(self.at_us)) >= _GAP_US
        kept = np.zeros(len(self.heads), np.bool_)
        kept[1:] |= pauses
        kept[:-1] |= pauses
        kept[0] = kept[1] = kept[-1] = True  # the last one may go on in the text behind
        return kept

    def _too_long(self) -> Flags:
        """Return which blocks the parser may cut in two."""
        lines = np.diff(np.append(self.heads, len(self.lines)))
        bytes_ = np.diff(np.append(self.lines.starts[self.heads], len(self.lines.text)))
        return (lines > BLOCK_LINES) | (bytes_ > BLOCK_BYTES // _WIDEST)


@lru_cache(maxsize=1024)
def _shape(beginning: bytes) -> bytes:
    """Return the beginning of a line, digits put to 0, without its words; a log has few of them."""
    return _NAME.sub(b"a", beginning)
