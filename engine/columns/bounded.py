"""Reads bounded input, source after source, as the stages of engine/pipeline.replay do up to correlation.

The first COLUMNS_FROM_BYTES are read line by line, so that a small scan does not load pyarrow; the rest is read in columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.columns.by_line import LineStages
from engine.match import Matcher, Observer
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block, Progress, TimeBounds
from engine.model.rules import Plan
from engine.parse import Assembler
from engine.ports import Chunk
from engine.quarantine import Quarantine

if TYPE_CHECKING:
    from engine.columns.audit import Audit
    from engine.columns.reading import LearntTexts, Reader

COLUMNS_FROM_BYTES = 512 * 1024  # of input; less is read line by line
BLOCK_BYTES = 8 << 20  # that are read together
WITHOUT_HEADER = "lines below no header"


class ReadingCost(Struct, frozen=True):
    """What columns decided, and what the reference read.

    Attributes:
        lines_one_by_one: the lines that were read before columns were used.
        lines: the lines that were read in columns.
        decided: the events in these that columns decided.
        by_reference: the events in these that the reference read; `reasons` says how many of them why, the most first.
        failed: the blocks that columns raised an error on.
        texts: how many texts that differ in more than digits were looked at; `classes`: how many bear a match or an error.
        table_bytes: the size of the table of texts.
    """

    lines_one_by_one: int
    lines: int = 0
    decided: int = 0
    by_reference: int = 0
    reasons: Mapping[str, int] = {}
    failed: int = 0
    texts: int = 0
    classes: int = 0
    table_bytes: int = 0


class Bounded:
    """Reads bounded input.

    Args:
        observe: called with the events that are read one by one and with their matches; of the others only with those of the
            levels ERROR and FATAL that no rule matches.
        also: expressions; `observe` is also called for events whose text one of them matches.
        quarantine: takes the input that a stage raises on; without one the error is raised.
        audited: whether some of the blocks that columns read are also read by the reference.
        bounds: the times whose events `within` counts; None: of none.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        observe: Observer,
        also: Iterable[str] = (),
        quarantine: Quarantine | None = None,
        audited: bool = False,
        bounds: TimeBounds | None = None,
    ) -> None:
        assembler, activity = Assembler(plan.formats), ActivityTracker()
        self._stages = LineStages(plan, matcher, assembler, activity, observe, quarantine, bounds=bounds)
        self._also = tuple(also)
        self._learnt: LearntTexts | None = None
        self._reader: Reader | None = None
        self._pending: list[Chunk] = []  # of one source
        self._bytes = 0
        self._lines_one_by_one = self._events_one_by_one = 0
        self._audited = audited
        self.audit: Audit | None = None  # made with the first block

    def go_on_with(self, other: Bounded) -> None:
        """Use the texts that `other` has learnt under the same plan; `other` must not read any more."""
        self._learnt = other._learnt

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self._stages.counts.lines

    @property
    def cost(self) -> ReadingCost:
        """What columns decided, and what the reference read."""
        if self._reader is None or self._learnt is None:
            return ReadingCost(self.lines)
        counts, classes = self._stages.counts, self._learnt.classes
        undecided = counts.reasons.total()
        by_reference = max(counts.by_reference - self._events_one_by_one, undecided)  # the last open event is read at the end
        reasons = {**counts.reasons, WITHOUT_HEADER: by_reference - undecided}
        return ReadingCost(
            self._lines_one_by_one,
            counts.lines - self._lines_one_by_one,
            counts.events - counts.by_reference,
            by_reference,
            {reason: count for reason, count in sorted(reasons.items(), key=lambda item: -item[1]) if count},
            counts.failed,
            classes.learnt,
            classes.with_results,
            classes.table_bytes,
        )

    @property
    def unobserved(self) -> int:
        """The number of events that `observe` was not called for."""
        return self._stages.counts.unobserved

    @property
    def within(self) -> int:
        """The number of events with a time within the bounds."""
        return self._stages.counts.within

    @property
    def unobserved_matches(self) -> int:
        """The number of matches of rules in these, without lines in which a component names itself."""
        return self._stages.counts.matches

    def read(self, input: Iterable[Chunk | Progress]) -> Iterator[Match | ActivitySpan | Progress]:
        """Yield the matches, spans and progress of `input`, in which each source ends before the next one begins."""
        for item in input:
            if isinstance(item, Chunk):
                yield from self._chunk(item)
                continue
            yield from self._block()
            yield from self._ended(self._stages.assembler.flush(item.source_id) if item.closed else ())
            yield item
        yield from self._block()
        yield from self._ended(self._stages.assembler.flush())

    def _chunk(self, chunk: Chunk) -> Iterator[Match | ActivitySpan]:
        self._bytes += len(chunk.data)
        if self._bytes < COLUMNS_FROM_BYTES:
            for line in chunk.lines():
                yield from self._stages.line(line)
            self._stages.report()
            return
        if self._pending and self._pending[0].source_id != chunk.source_id:
            yield from self._block()
        self._pending.append(chunk)
        if sum(len(pending.data) for pending in self._pending) >= BLOCK_BYTES:
            yield from self._block()

    def _block(self) -> Iterator[Match | ActivitySpan]:
        chunks, self._pending = self._pending, []
        if chunks:
            from engine.columns.reading import LearntTexts, Reader  # noqa: PLC0415  (pyarrow, which a small scan does without)

            if self._reader is None:
                counts = self._stages.counts
                self._lines_one_by_one, self._events_one_by_one = counts.lines, counts.by_reference
                self._learnt = self._learnt or LearntTexts(self._stages.plan, self._stages.matcher, self._also)
                self._reader = Reader(self._learnt, self._stages)
            yield from self._reader.read(chunks)
            if self._audited:
                from engine.columns.audit import Audit  # noqa: PLC0415  (imports what the reader imports)

                self.audit = self.audit or Audit(self._stages.plan)
                self.audit.block(self._reader, chunks)

    def _ended(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        yield from self._stages.blocks(blocks)
        self._stages.report()
        yield from self._stages.activity.close()
