"""The stages of engine/pipeline up to correlation, for one line, record or block at a time.

All hosts use it: for input that is too small for columns, and for lines and events that columns cannot decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct, field

from engine.match import Matcher, Observer, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block, LogEvent, RawLine, Record
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.quarantine import Quarantine, attempt


class ReadCounts(Struct):
    """What was read.

    Attributes:
        lines: the number of lines.
        events: the number of events.
        unobserved: events that the observer was not called for.
        matches: matches of rules in these, without lines in which a component names itself.
        by_reference: events that were read one by one.
        reasons: how many of these columns could not decide, by reason; the others have no header.
        failed: blocks that columns raised an error on, so that they were read line by line.
    """

    lines: int = 0
    events: int = 0
    unobserved: int = 0
    matches: int = 0
    by_reference: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    failed: int = 0


class LineStages:
    """The stages over one input, whose sources may interleave. Without a quarantine, what a stage raises is raised.

    Args:
        observe: called with each event and its matches (see `report`).
        held: takes a finished block and returns whether it keeps it; then the block is not decoded here.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        assembler: Assembler,
        activity: ActivityTracker,
        observe: Observer | None = None,
        quarantine: Quarantine | None = None,
        held: Callable[[Block], bool] | None = None,
    ) -> None:
        self.plan, self.matcher, self.quarantine = plan, matcher, quarantine
        self.assembler, self.activity = assembler, activity
        self.counts = ReadCounts()
        self._observe, self._held = observe, held
        self._observed: list[tuple[LogEvent, list[Match]]] = []

    def line(self, raw: RawLine) -> Iterator[Match | ActivitySpan]:
        """Read a line: yield the matches of the event that it ends, and the span."""
        self.counts.lines += 1
        record = attempt(self.quarantine, "unwrap", raw, unwrap_line, raw, self.plan.formats)
        if record is not None:
            yield from self.record(record)

    def record(self, record: Record) -> Iterator[Match | ActivitySpan]:
        """Read a record."""
        yield from self.blocks(attempt(self.quarantine, "assemble", record, self.assembler.push, record) or ())

    def close(self, source_id: str) -> Iterator[Match | ActivitySpan]:
        """End the open block of a source."""
        yield from self.blocks(self.assembler.close(source_id))

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        """Read finished blocks."""
        for block in blocks:
            if self._held is not None and self._held(block):
                continue
            for event in attempt(self.quarantine, "decode", block, decode_block, block, self.plan.formats) or ():
                self.counts.events += 1
                self.counts.by_reference += 1
                yield from self.activity.event(event)
                matches = matched_of(self.matcher, event, self.quarantine)
                self.observed(event, matches)
                yield from matches

    def observed(self, event: LogEvent, matches: list[Match]) -> None:
        """Note an event for the observer."""
        if self._observe is not None:
            self._observed.append((event, matches))

    def report(self) -> None:
        """Call the observer with the events that were noted since the last call, in the order of their offsets."""
        observed, self._observed = sorted(self._observed, key=lambda pair: pair[0].offset), []
        for event, matches in observed:
            attempt(self.quarantine, "observe", event, self._observe or _ignore, event, matches)


def _ignore(event: LogEvent, matches: list[Match]) -> None:
    """Observe nothing."""
