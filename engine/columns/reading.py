"""Reading one source in columns, block after block, saying what the stages of engine/pipeline would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np
from msgspec import Struct

from engine.columns.classes import UNDECIDED, Classes, Codes
from engine.columns.events import UNDATED, Events, events_of
from engine.columns.layouts import NONE, Layouts, Recogniser
from engine.columns.lines import Flags, Integers, lines_of
from engine.columns.matches import Sightings, matches_of
from engine.columns.records import Rows, Unwrapper
from engine.columns.stamps import NO_TIME, to_datetime
from engine.match import Matcher, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import SEEN_GAP_S, ActivitySpan, Match
from engine.model.records import Block, LogEvent
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.ports import Chunk
from engine.quarantine import Quarantine, attempt

_GAP = timedelta(seconds=SEEN_GAP_S)
_GAP_US = int(SEEN_GAP_S * 1_000_000)

Observer = Callable[[LogEvent, list[Match]], None]


class Counts(Struct):
    """How many lines and events were read, and how many of these by the reference."""

    lines: int = 0
    events: int = 0
    asked: int = 0


class Reader:
    """Reads sources in columns. What columns do not decide goes through `assembler`, which may hold an open event of a source
    that was read before.

    Args:
        also: expressions for texts that `observe` has to be told of.
        observe: told of each event that the reference reads, and of errors that no rule knows.
        quarantine: takes what raises; without one it is raised.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        assembler: Assembler,
        heard: ActivityTracker,
        observe: Observer,
        also: Iterable[str] = (),
        quarantine: Quarantine | None = None,
    ) -> None:
        self._plan, self._matcher, self._quarantine, self._observe = plan, matcher, quarantine, observe
        self._assembler, self._heard = assembler, heard
        self._recogniser = Recogniser(plan.formats)
        self._unwrapper = Unwrapper(self._recogniser)
        self._classes = Classes(plan, matcher, also)
        self._named = Sightings()
        self.counts = Counts()

    def read(self, chunks: Sequence[Chunk]) -> Iterator[Match | ActivitySpan]:
        """Yield what `chunks` say, of one source and in order. The last event of each source stays open in the assembler."""
        lines = lines_of(chunks)
        self.counts.lines += len(lines)
        rows, layouts = self._unwrapper.rows(lines, lambda line: unwrap_line(lines.raw(line), self._plan.formats))
        events = events_of(rows, self._recogniser, layouts)
        classed = self._classes.of(events)
        asked = events.asked | (classed.codes == UNDECIDED) | classed.doubted
        last = np.append(rows.source[events.heads][1:] != rows.source[events.heads][:-1], True)
        asked |= last[: len(events)]
        self.counts.events += int(np.count_nonzero(~asked))
        yield from self._matches(events, classed.codes, ~asked)
        yield from self._in_order(events, asked)

    def _in_order(self, events: Events, asked: Integers) -> Iterator[Match | ActivitySpan]:
        """Yield what the reference says of the events that it is asked of, and when the sources were heard from."""
        rows = events.rows
        borders = np.flatnonzero(np.diff(rows.source, prepend=-1) != 0).tolist()
        for begin, end in zip(borders, [*borders[1:], len(rows)], strict=True):
            source_id = rows.sources[int(rows.source[begin])]
            low, high = np.searchsorted(events.heads, (begin, end)).tolist()
            first = int(events.heads[low]) if low < high else end
            yield from self._push(rows, begin, first)
            at = low
            for event in [*(np.flatnonzero(asked[low:high]) + low).tolist(), high]:
                if at < event:
                    yield from self._close(source_id)
                    yield from self._heard_from(events, at, event)
                if event < high:
                    yield from self._push(rows, int(events.heads[event]), int(events.ends[event]))
                at = event + 1

    def _push(self, rows: Rows, begin: int, end: int) -> Iterator[Match | ActivitySpan]:
        """Let the reference read some rows."""
        for row in range(begin, end):
            record = rows.record(row)
            yield from self._blocks(attempt(self._quarantine, "assemble", record, self._assembler.push, record) or ())

    def _close(self, source_id: str) -> Iterator[Match | ActivitySpan]:
        yield from self._blocks(self._assembler.close(source_id))

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        for block in blocks:
            for event in attempt(self._quarantine, "decode", block, decode_block, block, self._plan.formats) or ():
                self.counts.events += 1
                self.counts.asked += 1
                yield from self._heard.event(event)
                matches = matched_of(self._matcher, event, self._quarantine)
                attempt(self._quarantine, "observe", event, self._observe, event, matches)
                yield from matches

    def _heard_from(self, events: Events, begin: int, end: int) -> Iterator[ActivitySpan]:
        """Yield the spans that end where these events of one source were heard."""
        numbers = np.arange(begin, end)
        times = events.at_us[begin:end]
        numbers, times = numbers[times > UNDATED], times[times > UNDATED]
        if not len(times):
            return
        cuts = np.concatenate(([0], np.flatnonzero(np.abs(np.diff(times)) >= _GAP_US) + 1))
        lows, highs = np.minimum.reduceat(times, cuts), np.maximum.reduceat(times, cuts)
        source_id = events.rows.sources[int(events.rows.source[int(events.heads[begin])])]
        for at, low, high in zip(cuts.tolist(), lows.tolist(), highs.tolist(), strict=True):
            span = ActivitySpan(source_id, to_datetime(low), to_datetime(high))
            open_ = self._heard._open.get(source_id)
            if open_ is not None and _goes_on(open_[0], open_[1], to_datetime(int(times[at]))):
                self._heard.joined(span)
                continue
            first = self._first(events, int(numbers[at]))
            yield from self._heard.event(first)
            self._heard.joined(span)

    def _first(self, events: Events, event: int) -> LogEvent:
        """Return an event as the reference reads its first line."""
        record = events.rows.record(int(events.heads[event]))
        return decode_block(Block((record,), headed=True), self._plan.formats)[0]

    def _matches(self, events: Events, codes: Codes, taken: Flags) -> Iterator[Match]:
        for event, matches in matches_of(events, codes, taken, self._classes.decided, self._matcher.redact, self._named):
            if event is not None:
                attempt(self._quarantine, "observe", event, self._observe, event, matches)
            yield from matches


def _goes_on(first: datetime, last: datetime, at: datetime) -> bool:
    return at - last < _GAP and first - at < _GAP


_ = (NO_TIME, NONE, Layouts)
