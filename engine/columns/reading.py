"""Reading one source in columns, block after block, saying what the stages of engine/pipeline would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from datetime import datetime, timedelta

import numpy as np
from msgspec import Struct, field

from engine.columns.classes import Classes
from engine.columns.events import UNDATED, Events, events_of
from engine.columns.layouts import NONE, Layouts, Recogniser
from engine.columns.lines import Flags, Integers, lines_of
from engine.columns.matches import Said, Sightings, matches_of
from engine.columns.records import RecordRows, Unwrapper
from engine.columns.stamps import NO_TIME, to_datetime
from engine.match import Matcher, Observer, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import SEEN_GAP_S, ActivitySpan, Match
from engine.model.records import Block, LogEvent, Record
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.ports import Chunk
from engine.quarantine import OF_THE_HOST, Quarantine, attempt

_GAP = timedelta(seconds=SEEN_GAP_S)
_GAP_US = int(SEEN_GAP_S * 1_000_000)

COMPONENT_LINE = "component:"  # what the rule ids of lines begin with in which a component names itself
ENOUGH = 64  # lines, and events: with fewer, arrays cost more than they save


OPEN = "the last event of a source in a block, which may go on"


class ReadCounts(Struct):
    """What was read.

    Attributes:
        lines: the lines.
        events: the events.
        unobserved: the events that `observe` was not called for.
        matches: the matches of rules that these had.
        by_reference: the events that the reference read.
        reasons: how many of these columns could not decide, by reason; the others have no header.
        failed: the blocks that columns raised an error on, so that the reference read them.
    """

    lines: int = 0
    events: int = 0
    unobserved: int = 0
    matches: int = 0
    by_reference: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    failed: int = 0


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
        self._plan, self._matcher, self._quarantine = plan, matcher, quarantine
        self._enough = ENOUGH
        self.begin(assembler, heard, observe)
        self._recogniser = Recogniser(plan.formats)
        self._unwrapper = Unwrapper(self._recogniser)
        self._classes = Classes(plan, matcher, also)

    def twin(self, observe: Observer, enough: int) -> Reader:
        """Return a reader of other input that shares what was learnt. It raises what the stages raise.

        Args:
            enough: from how many lines and events on it reads columns.
        """
        twin = copy(self)
        twin._quarantine, twin._enough = None, enough
        twin.begin(Assembler(self._plan.formats), ActivityTracker(), observe)
        return twin

    @property
    def classes(self) -> Classes:
        """The table of classes."""
        return self._classes

    def end(self) -> Iterator[Match | ActivitySpan]:
        """Yield what the open events of all sources say, and the spans."""
        yield from self._blocks(self._assembler.flush())
        self._observe_in_order()
        yield from self._heard.close()

    def begin(self, assembler: Assembler, heard: ActivityTracker, observe: Observer) -> None:
        """Begin with other input; what was learnt of texts stays."""
        self._assembler, self._heard, self._observe = assembler, heard, observe
        self._named = Sightings()
        self._waiting: list[tuple[LogEvent, list[Match]]] = []  # for the observer
        self.counts = ReadCounts()

    def read(self, chunks: Sequence[Chunk]) -> Iterator[Match | ActivitySpan]:
        """Yield what `chunks` say, of one source and in order. The last event of each source stays open in the assembler.

        Chunks that columns fail on are read line by line.
        """
        try:
            columns = self._columns(chunks)
        except OF_THE_HOST:
            raise
        except Exception:
            if self._quarantine is None:
                raise
            columns = None
            self.counts.failed += 1
        if columns is None:
            yield from self._line_by_line(chunks)
            self._observe_in_order()
            return
        events, asked, said = columns
        self.counts.lines += len(events.rows)
        decided = int(np.count_nonzero(~asked))
        self.counts.events += decided
        self.counts.unobserved += decided
        for event, matches in said:
            if event is not None:
                self.counts.unobserved -= 1
                self._observed(event, matches)
            else:
                self.counts.matches += sum(not each.rule_id.startswith(COMPONENT_LINE) for each in matches)
            yield from matches
        yield from self._in_order(events, asked)
        self._observe_in_order()

    def _observe_in_order(self) -> None:
        """Tell of the events of a block in the order in which they stand there."""
        waiting, self._waiting = sorted(self._waiting, key=lambda each: each[0].offset), []
        for event, matches in waiting:
            attempt(self._quarantine, "observe", event, self._observe, event, matches)

    def _columns(self, chunks: Sequence[Chunk]) -> tuple[Events, Flags, list[Said]] | None:
        """Return the events of `chunks`, which of them the reference is asked of, and what the others say; None when there are
        too few for columns to be worth it."""
        lines = lines_of(chunks)
        if len(lines) < self._enough:
            return None
        rows, layouts = self._unwrapper.rows(lines, lambda line: unwrap_line(lines.raw(line), self._plan.formats))
        events = events_of(rows, self._recogniser, layouts)
        if len(events) < self._enough:
            return None
        classed = self._classes.of(events)
        undecided = classed.undecided
        source = rows.source[events.heads]
        last = np.append(source[1:] != source[:-1], True)
        asked = undecided | last | self._torn(events, np.flatnonzero(np.roll(last, 1)))
        self.counts.reasons.update(classed.reasons)
        self.counts.reasons[OPEN] += int(np.count_nonzero(asked & ~undecided))
        decided, redact = self._classes.decided, self._matcher.redact
        return events, asked, list(matches_of(events, classed.codes, ~asked, decided, redact, self._named))

    def _torn(self, events: Events, firsts: Integers) -> Flags:
        """Return the first event of each source of which a part of a line is open: it goes on with that."""
        torn = np.zeros(len(events), np.bool_)
        for event in firsts.tolist():
            block = self._assembler.open_block(events.rows.sources[int(events.rows.source[int(events.heads[event])])])
            torn[event] = block is not None and block.records[-1].partial
        return torn

    def _line_by_line(self, chunks: Sequence[Chunk]) -> Iterator[Match | ActivitySpan]:
        for chunk in chunks:
            for raw in chunk.lines():
                self.counts.lines += 1
                record = attempt(self._quarantine, "unwrap", raw, unwrap_line, raw, self._plan.formats)
                if record is not None:
                    yield from self._pushed(record)

    def _pushed(self, record: Record) -> Iterator[Match | ActivitySpan]:
        yield from self._blocks(attempt(self._quarantine, "assemble", record, self._assembler.push, record) or ())

    def _observed(self, event: LogEvent, matches: list[Match]) -> None:
        self._waiting.append((event, matches))

    def _in_order(self, events: Events, asked: Flags) -> Iterator[Match | ActivitySpan]:
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

    def _push(self, rows: RecordRows, begin: int, end: int) -> Iterator[Match | ActivitySpan]:
        """Let the reference read some rows."""
        for row in range(begin, end):
            record = attempt(self._quarantine, "unwrap", rows.lines.raw(int(rows.line[row])), rows.record, row)
            if record is not None:
                yield from self._pushed(record)

    def _close(self, source_id: str) -> Iterator[Match | ActivitySpan]:
        yield from self._blocks(self._assembler.close(source_id))

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        for block in blocks:
            for event in attempt(self._quarantine, "decode", block, decode_block, block, self._plan.formats) or ():
                self.counts.events += 1
                self.counts.by_reference += 1
                yield from self._heard.event(event)
                matches = matched_of(self._matcher, event, self._quarantine)
                self._observed(event, matches)
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


def _goes_on(first: datetime, last: datetime, at: datetime) -> bool:
    return at - last < _GAP and first - at < _GAP


_ = (NO_TIME, NONE, Layouts)
