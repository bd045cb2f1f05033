"""Reads blocks of lines in columns, with the results of the stages of engine/pipeline.

The host loop of `tocsin scan` (bounded.py) and of the Spark worker (engine/spark/slices.py). Events that columns decide go from
columns to matches; all other lines and events go through LineStages, whose assembler also holds the open event of each source
between two blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import numpy as np

from engine.columns.by_line import LineStages
from engine.columns.classes import Classes
from engine.columns.events import Events, events_of
from engine.columns.layouts import Recogniser
from engine.columns.lines import MISDATED, UNDATED, Flags, Integers, lines_of
from engine.columns.matches import EventMatches, Sightings, matches_of
from engine.columns.records import RecordRows, Unwrapper
from engine.columns.stamps import to_datetime, to_us
from engine.match import Matcher, Observer
from engine.match.activity import ActivityTracker
from engine.model.matches import COMPONENT_LINE, SEEN_GAP_S, ActivitySpan, Match
from engine.model.records import Block, LogEvent, TimeBounds
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.ports import Chunk
from engine.quarantine import OF_THE_HOST, attempt

_GAP = timedelta(seconds=SEEN_GAP_S)
_GAP_US = int(SEEN_GAP_S * 1_000_000)

ENOUGH = 64  # lines, and events; for fewer, arrays cost more than they save
OPEN = "the last event of a source in a block, which may go on"


class LearntTexts:
    """What is remembered of texts under one plan, whatever they were read from: the layouts, prefixes and keys of documents
    that occurred, and the classes of events. It changes the speed, never a result. For one thread at a time.

    Args:
        also: expressions; events whose text one of them matches are decided although no rule asks for them.
    """

    def __init__(self, plan: Plan, matcher: Matcher, also: Iterable[str] = ()) -> None:
        self.recogniser = Recogniser(plan.formats)
        self.unwrapper = Unwrapper(self.recogniser)
        self.classes = Classes(plan, matcher, also)


class Reader:
    """Reads one input block after block.

    Args:
        stages: reads what columns cannot decide; its counts are those of the whole input.
        enough: the least number of lines and events that columns read; ENOUGH when None.
    """

    def __init__(self, learnt: LearntTexts, stages: LineStages, enough: int | None = None) -> None:
        self._learnt, self._stages = learnt, stages
        self._enough = ENOUGH if enough is None else enough
        self._sightings = Sightings()

    def twin(self, observe: Observer, enough: int) -> Reader:
        """Return a reader of other input that shares what was learnt. It raises what the stages raise."""
        plan, matcher = self._stages.plan, self._stages.matcher
        stages = LineStages(plan, matcher, Assembler(plan.formats), ActivityTracker(), observe)
        return Reader(self._learnt, stages, enough)

    def end(self) -> Iterator[Match | ActivitySpan]:
        """Yield the matches and spans of the open events of all sources."""
        yield from self._stages.blocks(self._stages.assembler.flush())
        self._stages.report()
        yield from self._stages.activity.close()

    def read(self, chunks: Sequence[Chunk]) -> Iterator[Match | ActivitySpan]:
        """Yield the matches and spans of `chunks`, whose sources may interleave; those of one source are in order. The last
        event of each source stays open in the assembler. The observer is called in the order of offsets.

        Chunks that columns raise on are read line by line.
        """
        try:
            columns = self._columns(chunks)
        except OF_THE_HOST:
            raise
        except Exception:
            if self._stages.quarantine is None:
                raise
            columns = None
            self._stages.counts.failed += 1
        if columns is None:
            for chunk in chunks:
                for raw in chunk.lines():
                    yield from self._stages.line(raw)
        else:
            yield from self._decided(*columns)
            yield from self._in_order(*columns[:2])
        self._stages.report()

    def _columns(self, chunks: Sequence[Chunk]) -> tuple[Events, Flags, list[EventMatches]] | None:
        """Return the events of `chunks`, which of them are for the stages, and the results of the others; None when there are
        too few."""
        lines = lines_of(chunks)
        if len(lines) < self._enough:
            return None
        plan, learnt = self._stages.plan, self._learnt
        rows, layouts = learnt.unwrapper.rows(lines, lambda line: unwrap_line(lines.raw(line), plan.formats))
        events = events_of(rows, learnt.recogniser, layouts)
        if len(events) < self._enough:
            return None
        classed = learnt.classes.of(events)
        source = rows.source[events.heads]
        last = np.append(source[1:] != source[:-1], True)
        asked = classed.undecided | last | self._torn(events, np.flatnonzero(np.roll(last, 1)))
        self._stages.counts.reasons.update(classed.reasons)
        self._stages.counts.reasons[OPEN] += int(np.count_nonzero(asked & ~classed.undecided))
        redact = self._stages.matcher.redact
        return events, asked, list(matches_of(events, classed.codes, ~asked, learnt.classes.decided, redact, self._sightings))

    def _torn(self, events: Events, firsts: Integers) -> Flags:
        """Return the first event of each source whose open block ends within a line: it may be the rest of that line."""
        torn = np.zeros(len(events), np.bool_)
        for event in firsts.tolist():
            block = self._stages.assembler.open_block(events.source_id(event))
            torn[event] = block is not None and block.records[-1].partial
        return torn

    def _decided(self, events: Events, asked: Flags, results: Iterable[EventMatches]) -> Iterator[Match]:
        """Yield the matches of events that columns decided."""
        counts, decided = self._stages.counts, int(np.count_nonzero(~asked))
        counts.lines += len(events.rows)
        counts.events += decided
        counts.unobserved += decided
        if self._stages.bounds is not None:
            counts.within += int(np.count_nonzero(~asked & _within(self._stages.bounds, events.at_us)))
        if self._stages.quarantine is not None:
            for number in np.flatnonzero(~asked & (events.at_us == MISDATED)).tolist():
                self._stages.quarantine.misdated(events.source_id(number))
        for event, matches in results:
            if event is None:
                counts.matches += sum(not match.rule_id.startswith(COMPONENT_LINE) for match in matches)
            else:
                counts.unobserved -= 1
                self._stages.observed(event, matches)
            yield from matches

    def _in_order(self, events: Events, asked: Flags) -> Iterator[Match | ActivitySpan]:
        """Yield the results of the stages for the events that are `asked`, and the spans of all, source by source."""
        rows = events.rows
        borders = np.flatnonzero(np.diff(rows.source, prepend=-1) != 0).tolist()
        for begin, end in zip(borders, [*borders[1:], len(rows)], strict=True):
            source_id = rows.sources[int(rows.source[begin])]
            low, high = np.searchsorted(events.heads, (begin, end)).tolist()
            yield from self._push(rows, begin, int(events.heads[low]) if low < high else end)
            at = low
            for event in [*(np.flatnonzero(asked[low:high]) + low).tolist(), high]:
                if at < event:
                    yield from self._stages.close(source_id)
                    yield from self._spans(events, at, event)
                if event < high:
                    yield from self._push(rows, int(events.heads[event]), int(events.ends[event]))
                at = event + 1

    def _push(self, rows: RecordRows, begin: int, end: int) -> Iterator[Match | ActivitySpan]:
        """Let the stages read some rows."""
        for row in range(begin, end):
            record = attempt(self._stages.quarantine, "unwrap", rows.lines.raw(int(rows.line[row])), rows.record, row)
            if record is not None:
                yield from self._stages.record(record)

    def _spans(self, events: Events, begin: int, end: int) -> Iterator[ActivitySpan]:
        """Add the times of events of one source to its activity; yield the spans that they end."""
        activity = self._stages.activity
        numbers = np.arange(begin, end)
        times = events.at_us[begin:end]
        numbers, times = numbers[times > UNDATED], times[times > UNDATED]
        if not len(times):
            return
        cuts = np.concatenate(([0], np.flatnonzero(np.abs(np.diff(times)) >= _GAP_US) + 1))
        lows, highs = np.minimum.reduceat(times, cuts), np.maximum.reduceat(times, cuts)
        source_id = events.source_id(begin)
        for at, low, high in zip(cuts.tolist(), lows.tolist(), highs.tolist(), strict=True):
            span = ActivitySpan(source_id, to_datetime(low), to_datetime(high))
            open_span = activity._open.get(source_id)
            if open_span is None or not _goes_on(open_span[0], open_span[1], to_datetime(int(times[at]))):
                yield from activity.event(self._first(events, int(numbers[at])))
            activity.joined(span)

    def _first(self, events: Events, event: int) -> LogEvent:
        """Return an event as the stages read its first line."""
        record = events.rows.record(int(events.heads[event]))
        return decode_block(Block((record,), headed=True), self._stages.plan.formats)[0]


def _within(bounds: TimeBounds, at_us: Integers) -> Flags:
    since_us = UNDATED + 1 if bounds.since is None else to_us(bounds.since)
    return (at_us >= since_us) & (True if bounds.until is None else at_us < to_us(bounds.until))


def _goes_on(first: datetime, last: datetime, at: datetime) -> bool:
    """Return whether an event at `at` continues a span."""
    return at - last < _GAP and first - at < _GAP
