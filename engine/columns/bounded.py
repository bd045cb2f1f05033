"""Bounded input, source after source: what the stages of engine/pipeline.replay say of it, up to correlation.

Little of it goes through those stages line by line, before what columns need is loaded; more of it goes through columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.match import Matcher, Observer, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block, Progress
from engine.model.rules import Plan
from engine.parse import Assembler, decode_block, unwrap_line
from engine.ports import Chunk
from engine.quarantine import Quarantine, attempt

if TYPE_CHECKING:
    from engine.columns.audit import Audit
    from engine.columns.reading import Reader

COLUMNS_FROM_BYTES = 512 * 1024  # of input: less is read line by line
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
        observe: called with the events that are read one by one and their matches; of others with those of bad levels only.
        also: expressions for texts that `observe` has to be called for.
        quarantine: takes what raises, and all else goes on; without one it is raised.
        audited: some of the blocks that columns read are also read by the reference.
    """

    def __init__(
        self,
        plan: Plan,
        matcher: Matcher,
        observe: Observer,
        also: Iterable[str] = (),
        quarantine: Quarantine | None = None,
        audited: bool = False,
    ) -> None:
        self._plan, self._matcher, self._quarantine = plan, matcher, quarantine
        self._observe, self._also = observe, tuple(also)
        self._assembler, self._heard = Assembler(plan.formats), ActivityTracker()
        self._reader: Reader | None = None
        self._waiting: list[Chunk] = []
        self._bytes = 0
        self._lines = 0
        self._audited = audited
        self.audit: Audit | None = None  # made with the first block

    def go_on_with(self, other: Bounded) -> None:
        """Use what `other` has learnt of texts under the same plan; it reads nothing any more."""
        self._reader = other._reader
        if self._reader is not None:
            self._reader.begin(self._assembler, self._heard, self._observe)

    @property
    def lines(self) -> int:
        """How many lines there were."""
        return self._lines + (self._reader.counts.lines if self._reader is not None else 0)

    @property
    def cost(self) -> ReadingCost:
        """What columns decided, and what the reference read."""
        reader = self._reader
        if reader is None:
            return ReadingCost(self._lines)
        counts, classes = reader.counts, reader.classes
        by_reference = max(counts.by_reference, counts.reasons.total())  # the last open event is read at the end
        reasons = {**counts.reasons, WITHOUT_HEADER: by_reference - counts.reasons.total()}
        return ReadingCost(
            self._lines,
            counts.lines,
            counts.events - counts.by_reference,
            by_reference,
            {reason: count for reason, count in sorted(reasons.items(), key=lambda item: -item[1]) if count},
            counts.failed,
            classes.learnt,
            classes.bearing,
            classes.table_bytes,
        )

    @property
    def unobserved(self) -> int:
        """How many events `observe` was not called for."""
        return self._reader.counts.unobserved if self._reader is not None else 0

    @property
    def unobserved_matches(self) -> int:
        """How many matches of rules these had, without lines in which a component names itself."""
        return self._reader.counts.matches if self._reader is not None else 0

    def read(self, items: Iterable[Chunk | Progress]) -> Iterator[Match | ActivitySpan | Progress]:
        """Yield what `items` say; each source is whole before the next one begins."""
        for item in items:
            if isinstance(item, Chunk):
                yield from self._chunk(item)
                continue
            yield from self._block()
            yield from self._events(self._assembler.flush(item.source_id) if item.closed else ())
            yield from self._heard.close()
            yield item
        yield from self._block()
        yield from self._events(self._assembler.flush())
        yield from self._heard.close()

    def _chunk(self, chunk: Chunk) -> Iterator[Match | ActivitySpan]:
        self._bytes += len(chunk.data)
        if self._bytes < COLUMNS_FROM_BYTES:
            yield from self._line_by_line(chunk)
            return
        if self._waiting and self._waiting[0].source_id != chunk.source_id:
            yield from self._block()
        self._waiting.append(chunk)
        if sum(len(each.data) for each in self._waiting) >= BLOCK_BYTES:
            yield from self._block()

    def _block(self) -> Iterator[Match | ActivitySpan]:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._reader is None:
            from engine.columns.reading import Reader  # noqa: PLC0415  (pyarrow, which a small scan does without)

            self._reader = Reader(
                self._plan, self._matcher, self._assembler, self._heard, self._observe, self._also, self._quarantine
            )
        yield from self._reader.read(waiting)
        if self._audited:
            from engine.columns.audit import Audit  # noqa: PLC0415  (imports what the reader imports)

            self.audit = self.audit or Audit(self._plan)
            self.audit.block(self._reader, waiting)

    def _line_by_line(self, chunk: Chunk) -> Iterator[Match | ActivitySpan]:
        for line in chunk.lines():
            self._lines += 1
            record = attempt(self._quarantine, "unwrap", line, unwrap_line, line, self._plan.formats)
            if record is not None:
                yield from self._events(attempt(self._quarantine, "assemble", record, self._assembler.push, record) or ())

    def _events(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        for block in blocks:
            for event in attempt(self._quarantine, "decode", block, decode_block, block, self._plan.formats) or ():
                yield from self._heard.event(event)
                matches = matched_of(self._matcher, event, self._quarantine)
                attempt(self._quarantine, "observe", event, self._observe, event, matches)
                yield from matches
