"""Scan one slice of a source: chunks go in; matches, activity spans and slice fragments come out. Pure.

A slice may begin and end in the middle of an event. Events that lie wholly within it are matched here, in the worker that read
the slice. The records before its first header and the blocks still open at its end travel as SliceFragments to the keyed state
(engine/spark/streams.py), which joins them with the slices before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from engine.cache import DiskCache
from engine.codec import loads
from engine.columns.audit import Audit, AuditResult
from engine.columns.bounded import BLOCK_BYTES
from engine.columns.by_line import LineStages
from engine.columns.reading import LearntTexts, Reader
from engine.correlate import StateCache
from engine.gc_tuning import freeze_survivors
from engine.match import Matcher, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Block
from engine.model.rules import OWN, Format, Plan
from engine.parse import Assembler, decode_block
from engine.parse.assembling import Snapshot
from engine.parse.headers import header_book
from engine.ports import Chunk
from engine.quarantine import Quarantine, attempt
from engine.spark.redacting import redact_block

MAX_WAITING_BYTES = 16 << 20  # of all streams of a slice that wait to be read


class EarlyMatches(Struct, frozen=True):
    """The matches of an open block, made when it had `records` records."""

    records: int
    matches: tuple[Match, ...] = ()


class SliceFragments(Struct, frozen=True):
    """The parts of slice [start, end) of the stream `parent_id` that cannot be matched without its neighbours, redacted.

    Attributes:
        heads: blocks that need the records before the slice, in order for each source.
        moved_on: the sources (the stream itself, or containers printed into it) that began another event after their heads,
            sorted.
        tail: the blocks that were open at the end and do not need the records before the slice, with the labels that lines of
            the slice carry on.
        early: the matches of those blocks of the tail that held a secret, made before it was redacted, by source: the last
            event of a log is always open, and seldom cut.
    """

    parent_id: str
    start: int
    end: int
    heads: tuple[Block, ...]
    moved_on: tuple[str, ...]
    tail: Snapshot
    early: Mapping[str, EarlyMatches] = field(default_factory=dict)


class Scanned(Struct, frozen=True):
    """The amount of input in one stream's part of a slice, and its newest event time; None when no event had one.

    `events` are those that lie wholly within the slice; the others are in BatchCounts.
    """

    source_id: str
    lines: int
    bytes: int
    newest: datetime | None = None
    events: int = 0


class CompiledRules(Struct, frozen=True):
    """A plan with its matcher compiled."""

    plan: Plan
    matcher: Matcher


class WorkerStages(CompiledRules, frozen=True, dict=True):
    """What a worker keeps between slices and batches: the compiled rules about logs and the correlation logics of its scopes.

    Attributes:
        own: the rules about tocsin's own input, which are evaluated apart.
        takers: the names of the formats whose lines take labels that an earlier line carries.
        state_cache: the logics that no scope uses now.
    """

    own: CompiledRules
    takers: frozenset[str]
    state_cache: StateCache = field(default_factory=StateCache)

    @cached_property
    def learnt(self) -> LearntTexts:
        """What is remembered of texts."""
        return LearntTexts(self.plan, self.matcher)

    @cached_property
    def audit(self) -> Audit:
        """The audit of all blocks that this worker reads."""
        return Audit(self.plan, errors=False)

    @property
    def lost_matches(self) -> int:
        """The number of texts with a sign that Hyperscan did not find (see Prefilter)."""
        return self.matcher.prefilter.lost

    @property
    def formats(self) -> tuple[Format, ...]:
        """The plan's formats, always the same object: the parser's cache of compiled formats is keyed by it."""
        return self.plan.formats


def stages(plan: Plan) -> WorkerStages:
    """Return the stages with the rules of `plan` compiled."""
    log_plan = replace(plan, signatures=tuple(signature for signature in plan.signatures if signature.rule.component != OWN))
    takers = frozenset(name for format_ in plan.formats for name in format_.carries)
    return WorkerStages(log_plan, Matcher(log_plan, DiskCache()), own_rules(plan), takers)


def own_rules(plan: Plan) -> CompiledRules:
    """Compile the rules of `plan` about tocsin's own input."""
    signatures = tuple(signature for signature in plan.signatures if signature.rule.component == OWN)
    own_plan = replace(plan, signatures=signatures, correlations=(), components=())
    return CompiledRules(own_plan, Matcher(own_plan))


@lru_cache(maxsize=2)
def stages_of(plan_file: str) -> WorkerStages:
    """Return the stages of the plan in `plan_file`, cached in the process; the file's name contains the plan's hash.

    Args:
        plan_file: a path, or the name of a file that the driver has added for all executors (SparkContext.addFile).
    """
    freeze_survivors()  # so that the garbage of the previous plan is collected
    return stages(loads(_local_path(plan_file).read_text(encoding="utf-8"), Plan))


def _local_path(file: str) -> Path:
    path = Path(file)
    if path.is_absolute():
        return path
    from engine.spark.spark_files import spark_file  # noqa: PLC0415  (needs pyspark)

    return spark_file(file)


def scan(
    chunks: Iterable[Chunk], stages: WorkerStages, audited: bool = False
) -> Iterator[Match | ActivitySpan | SliceFragments | Scanned | DeadLetter | Misdated | AuditResult]:
    """Yield the matches of the events that lie wholly within the slice, the spans and fragments of each stream and how much it
    held; at the end, the dead letters: a line or event that a stage fails on does not affect the others.

    Args:
        audited: some of the blocks are also read by the reference; the result is the last item if there are any.
    """
    streams: dict[str, _Stream] = {}
    quarantine = Quarantine(stages.matcher.redact)
    waiting_bytes = 0  # an upper bound
    for chunk in chunks:
        stream = streams.get(chunk.parent_id)
        if stream is None or not stream.continues_at(chunk):
            yield from stream.finish() if stream else ()
            stream = streams[chunk.parent_id] = _Stream(stages, chunk, quarantine, audited)
        yield from stream.take(chunk)
        waiting_bytes += len(chunk.data)
        if waiting_bytes >= MAX_WAITING_BYTES:
            for stream in streams.values():
                yield from stream.read()
            waiting_bytes = 0
    for stream in streams.values():
        yield from stream.finish()
    yield from quarantine.taken()
    if audited and (result := stages.audit.taken(stages.matcher.redact)).blocks:
        yield result


class _Stream:
    """One stream's part of a slice on its way through the stages."""

    def __init__(self, stages: WorkerStages, first: Chunk, quarantine: Quarantine, audited: bool) -> None:
        self._stages, self._quarantine, self._audited = stages, quarantine, audited
        self._parent_id = first.parent_id
        self._start = self._end = first.offset
        self._bytes = 0
        self._newest: datetime | None = None
        self._mid_stream = first.offset > 0
        self._assembler = Assembler(stages.formats, mid_stream=self._mid_stream)
        self._activity = ActivityTracker(first.parent_id)
        self._line_stages = LineStages(
            stages.plan, stages.matcher, self._assembler, self._activity, quarantine=quarantine, retain=self._retain
        )
        self._reader = Reader(stages.learnt, self._line_stages)
        self._heads: list[Block] = []
        self._moved_on: set[str] = set()
        self._labelled: set[str] = set()  # sources with a line in this slice that carries labels
        self._pending: list[Chunk] = []
        self._pending_bytes = 0

    def continues_at(self, chunk: Chunk) -> bool:
        return chunk.offset == self._end

    def take(self, chunk: Chunk) -> Iterator[Match | ActivitySpan]:
        self._end = chunk.next_offset
        self._bytes += len(chunk.data)
        self._pending.append(chunk)
        self._pending_bytes += len(chunk.data)
        if self._pending_bytes >= BLOCK_BYTES:
            yield from self.read()

    def read(self) -> Iterator[Match | ActivitySpan]:
        """Read the pending chunks."""
        chunks, self._pending, self._pending_bytes = self._pending, [], 0
        if chunks:
            yield from self._dated(self._reader.read(chunks))
            if self._audited:
                self._stages.audit.block(self._reader, chunks)

    def finish(self) -> Iterator[Match | ActivitySpan | SliceFragments | Scanned]:
        yield from self.read()
        yield from self._dated(self._activity.close())
        fragments = self._fragments()
        yield fragments
        newest = self._newest or self._newest_of(fragments.tail.open)
        counts = self._line_stages.counts
        yield Scanned(self._parent_id, counts.lines, self._bytes, newest, counts.events)

    def _newest_of(self, blocks: Iterable[Block]) -> datetime | None:
        """Return the newest time of open blocks, for a slice that ended no event, as those of a log with few lines."""
        unused = Quarantine(self._stages.matcher.redact)  # they are decoded again, and told of, once they are finished
        decoded = (attempt(unused, "decode", block, decode_block, block, self._stages.formats) for block in blocks)
        times = (event.timestamp for events in decoded for event in events or ())
        return max((at for at in times if at is not None), default=None)

    def _dated(self, items: Iterable[Match | ActivitySpan]) -> Iterator[Match | ActivitySpan]:
        """Yield `items`, and take the newest event time of their spans."""
        for item in items:
            if isinstance(item, ActivitySpan):
                self._newest = item.last if self._newest is None else max(self._newest, item.last)
            yield item

    def _retain(self, block: Block) -> bool:
        """Keep a finished block as a head of the slice if it cannot be decoded without the slice before; return whether it
        was kept. Every event of a source but its last one ends with a call or is decided by columns."""
        self._moved_on.add(source_of(block))
        is_head = block.unsettled or self._may_lack_labels(block)
        if is_head:
            self._heads.append(block)
        return is_head

    def _may_lack_labels(self, block: Block) -> bool:
        """Return whether a line before this slice may have carried labels for `block`."""
        source_id = source_of(block)
        if not self._mid_stream or not block.headed or source_id in self._labelled:
            return False
        layout = header_book(self._stages.formats).find(block.records[0].text)
        if layout is not None and layout.carries:
            self._labelled.add(source_id)
        return layout is not None and layout.name in self._stages.takers

    def _fragments(self) -> SliceFragments:
        snapshot = loads(self._assembler.snapshot(), Snapshot)
        dependent = [block for block in snapshot.open if block.unsettled or self._may_lack_labels(block)]
        tail = tuple(block for block in snapshot.open if block not in dependent)
        moved_on = {*self._moved_on, *map(source_of, tail)} - set(map(source_of, dependent))
        redacted_by_source = {source_of(block): self._redacted(block) for block in tail}
        return SliceFragments(
            self._parent_id,
            self._start,
            self._end,
            tuple(filter(None, map(self._redacted, (*self._heads, *dependent)))),
            tuple(sorted(moved_on)),
            Snapshot(tuple(filter(None, redacted_by_source.values())), carried=snapshot.carried),
            {
                source_of(block): self._match_early(block)
                for block in tail
                if redacted_by_source[source_of(block)] not in (None, block)
            },
        )

    def _redacted(self, block: Block) -> Block | None:
        """Return an open block redacted; None when it went into quarantine."""
        return attempt(
            self._quarantine, "redact", block, redact_block, block, self._stages.formats, self._stages.matcher.redact
        )

    def _match_early(self, block: Block) -> EarlyMatches:
        items = matched(block, self._stages, ActivityTracker(), self._quarantine)
        return EarlyMatches(len(block.records), tuple(item for item in items if isinstance(item, Match)))


def source_of(block: Block) -> str:
    """Return the id of the source that the records of `block` are from."""
    return block.records[0].source_id


def matched(
    block: Block, stages: WorkerStages, activity: ActivityTracker, quarantine: Quarantine | None = None
) -> Iterator[Match | ActivitySpan]:
    """Yield the matches of a finished block, and the spans of its source that it ends.

    A block or event that a stage fails on goes into `quarantine`; without one the error is raised.
    """
    for event in attempt(quarantine, "decode", block, decode_block, block, stages.formats) or ():
        yield from activity.event(event)
        yield from matched_of(stages.matcher, event, quarantine)
