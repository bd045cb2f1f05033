"""The stages of engine/pipeline up to matching, for one line, record or block at a time.

Every host uses them for input that is too small for columns, and for lines and events that columns cannot decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field

from engine.match import Matcher, Observer, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block, LogEvent, RawLine, Record, TimeBounds
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.quarantine import Quarantine, attempt


class ReadCounts(Struct):
    """Counts of one input, by columns and by line.

    Attributes:
        lines: lines that were read.
        events: events that were read.
        unobserved: events that the observer was not called with.
        matches: matches in these, without lines in which a component prints its own id.
        by_reference: events that were read one by one.
        reasons: those of them that columns could not decide, by reason; the rest has no header.
        within: events with a time within the bounds of LineStages; 0 without bounds.
        failed: blocks that columns raised an error on, and that were read line by line.
    """

    lines: int = 0
    events: int = 0
    unobserved: int = 0
    matches: int = 0
    by_reference: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    within: int = 0
    failed: int = 0


class LineStages:
    """The stages over one input, whose sources may interleave.

    Args:
        observe: called with each event and its matches, by `report`.
        quarantine: takes the input that a stage fails on; without one, the error is raised.
        bounds: the times whose events are counted apart; None for none.
        retain: called with each finished block; returns whether it keeps the block, which is then not decoded here.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        assembler: Assembler,
        activity: ActivityTracker,
        observe: Observer | None = None,
        quarantine: Quarantine | None = None,
        retain: Callable[[Block], bool] | None = None,
        bounds: TimeBounds | None = None,
    ) -> None:
        self.plan, self.matcher, self.quarantine = plan, matcher, quarantine
        self.assembler, self.activity = assembler, activity
        self.counts, self.bounds = ReadCounts(), bounds
        self._observe, self._retain = observe, retain
        self._observed: list[tuple[LogEvent, list[Match]]] = []

    def line(self, raw: RawLine) -> Iterator[Match | ActivitySpan]:
        """Read a line; yield the matches of the event that it ends, and the activity span that this event ends."""
        self.counts.lines += 1
        record = attempt(self.quarantine, "unwrap", raw, unwrap_line, raw, self.plan.formats)
        if record is not None:
            yield from self.record(record)

    def record(self, record: Record) -> Iterator[Match | ActivitySpan]:
        """Read a record; yield as `line` does."""
        yield from self.blocks(attempt(self.quarantine, "assemble", record, self.assembler.push, record) or ())

    def close(self, source_id: str) -> Iterator[Match | ActivitySpan]:
        """End the open block of a source; yield the matches of its events and the span that they end."""
        yield from self.blocks(self.assembler.close(source_id))

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        """Read finished blocks; yield the matches of their events and the spans that they end."""
        for block in blocks:
            if self._retain is not None and self._retain(block):
                continue
            for event in attempt(self.quarantine, "decode", block, decode_block, block, self.plan.formats) or ():
                self.counts.events += 1
                self.counts.by_reference += 1
                if self.bounds is not None and event.timestamp is not None:
                    self.counts.within += self.bounds.holds(event.timestamp)
                yield from self.activity.event(event)
                matches = matched_of(self.matcher, event, self.quarantine)
                self.observed(event, matches)
                yield from matches

    def observed(self, event: LogEvent, matches: list[Match]) -> None:
        """Store an event for the next call of `report`."""
        if self._observe is not None:
            self._observed.append((event, matches))

    def report(self) -> None:
        """Call the observer with the events since the last report, in the order of their offsets."""
        observed, self._observed = sorted(self._observed, key=lambda pair: pair[0].offset), []
        for event, matches in observed:
            attempt(self.quarantine, "observe", event, self._observe or _ignore, event, matches)


def _ignore(event: LogEvent, matches: list[Match]) -> None:
    """Observe nothing."""
