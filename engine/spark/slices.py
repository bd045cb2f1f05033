"""Scanning one slice of a source: chunks in; matches, spans and what the slice cannot settle alone out. Pure.

A slice may begin and end in the middle of an event. What it can decide alone is matched here, in the worker that read it; the
records before its first header and the blocks still open at its end travel as Edges to the keyed state (engine/spark/streams),
which joins them with the slices before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from engine.cache import DiskCache
from engine.codec import loads
from engine.correlate import StateCache
from engine.gc_tuning import keep_what_stays
from engine.match import Matcher, matched_of
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Block, Record
from engine.model.rules import OWN, Format, Plan
from engine.parse import Assembler, decode_block
from engine.parse.assembling import Snapshot
from engine.parse.headers import header_book
from engine.ports import Chunk
from engine.quarantine import Quarantine, attempt
from engine.skim.sight import Sight, sight_of
from engine.skim.skimmer import Skimmer
from engine.spark.redacting import redacted

PIECE_BYTES = 1 << 20  # of a source that are skimmed together
HELD_BYTES = 16 << 20  # of a slice that wait for it at most, of all sources together


class EarlyMatches(Struct, frozen=True):
    """An open block that was matched when it had this many records, and its matches."""

    records: int
    matches: tuple[Match, ...] = ()


class SliceFragments(Struct, frozen=True):
    """What slice [start, end) of the stream `parent_id` cannot settle alone.

    `heads` hold records, each source's in order, that need what came before them. `moved_on` are the sources (the stream
    itself, or containers printed into it) that went on with another event behind them. `tail` is what was open at the end and
    does not need what came before, with the labels that lines of the slice carry on. Secrets are taken out of all of them.
    What the blocks of the tail said with them is in `early`, by source: the last event of a log is always open, and seldom cut.
    """

    parent_id: str
    start: int
    end: int
    heads: tuple[Block, ...]
    moved_on: tuple[str, ...]
    tail: Snapshot
    early: Mapping[str, EarlyMatches] = field(default_factory=dict)


class Scanned(Struct, frozen=True):
    """How much a slice held."""

    source_id: str
    lines: int
    bytes: int


class CompiledRules(Struct, frozen=True):
    """A plan with its matcher compiled."""

    plan: Plan
    matcher: Matcher


class WorkerStages(CompiledRules, frozen=True, dict=True):
    """What a worker keeps between slices and batches: the rules about logs, and apart from them those about tocsin's `own`
    input; the logics of its scopes."""

    own: CompiledRules
    takers: frozenset[str]  # formats whose lines take labels that an earlier line carries
    resting: StateCache = field(default_factory=StateCache)

    @cached_property
    def sight(self) -> Sight:
        """How raw lines are skimmed; made when first asked for."""
        return sight_of(self.matcher, self.formats)

    @property
    def lost_matches(self) -> int:
        """Return in how many events Hyperscan lost a match (see Screen)."""
        return self.sight.screen.lost if "sight" in self.__dict__ else 0

    @property
    def formats(self) -> tuple[Format, ...]:
        """The plan's formats, the same object each time: the parser finds its compiled form by it."""
        return self.plan.formats


def stages(plan: Plan) -> WorkerStages:
    """Compile `plan`."""
    about_logs = replace(plan, signatures=tuple(each for each in plan.signatures if each.rule.component != OWN))
    takers = frozenset(name for format_ in plan.formats for name in format_.carries)
    return WorkerStages(about_logs, Matcher(about_logs, DiskCache()), own_rules(plan), takers)


def own_rules(plan: Plan) -> CompiledRules:
    """Compile the rules of `plan` about tocsin's own input."""
    own = tuple(each for each in plan.signatures if each.rule.component == OWN)
    about_us = replace(plan, signatures=own, correlations=(), components=())
    return CompiledRules(about_us, Matcher(about_us))


@lru_cache(maxsize=2)
def stages_of(plan_file: str) -> WorkerStages:
    """Return the stages of the plan in `plan_file` (its name holds the plan's hash), kept for the life of the process."""
    keep_what_stays()  # what the plan before this one left stays no longer
    return stages(loads(Path(plan_file).read_text(encoding="utf-8"), Plan))


def scan(
    chunks: Iterable[Chunk], stages: WorkerStages
) -> Iterator[Match | ActivitySpan | SliceFragments | Scanned | DeadLetter | Misdated]:
    """Yield every match of the events that lie wholly within the slice, and for each stream its spans and its edges; last, what
    raised, which costs only itself."""
    streams: dict[str, _Stream] = {}
    quarantine = Quarantine(stages.matcher.redact)
    taken = 0  # bytes, since nothing was waiting
    for chunk in chunks:
        stream = streams.get(chunk.parent_id)
        if stream is None or not stream.goes_on_with(chunk):
            yield from stream.finish() if stream else ()
            stream = streams[chunk.parent_id] = _Stream(stages, chunk, quarantine)
        yield from stream.take(chunk)
        taken += len(chunk.data)
        if taken >= HELD_BYTES:
            for each in streams.values():
                yield from each.read()
            taken = 0
    for each in streams.values():
        yield from each.finish()
    yield from quarantine.taken()


class _Waiting(Struct):
    """What waits to be skimmed of a source."""

    chunks: list[Chunk] = field(default_factory=list)
    bytes: int = 0


class _Stream:
    """One stream's part of a slice on its way through the stages."""

    def __init__(self, stages: WorkerStages, first: Chunk, quarantine: Quarantine) -> None:
        self._stages, self._quarantine = stages, quarantine
        self._parent_id = first.parent_id
        self._start = self._end = first.offset
        self._bytes = 0
        self._mid_stream = first.offset > 0
        self._assembler = Assembler(stages.formats, mid_stream=self._mid_stream)
        self._heard = ActivityTracker(first.parent_id)
        self._heads: list[Block] = []
        self._moved_on: set[str] = set()
        self._skimmers: dict[str, Skimmer] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._labelled: set[str] = set()  # sources whose carried labels are known in this slice

    def goes_on_with(self, chunk: Chunk) -> bool:
        return chunk.offset == self._end

    def take(self, chunk: Chunk) -> Iterator[Match | ActivitySpan]:
        self._end = chunk.next_offset
        self._bytes += len(chunk.data)
        waiting = self._waiting.setdefault(chunk.source_id, _Waiting())
        waiting.chunks.append(chunk)
        waiting.bytes += len(chunk.data)
        if waiting.bytes >= PIECE_BYTES:
            yield from self._read(chunk.source_id)

    def read(self) -> Iterator[Match | ActivitySpan]:
        """Read what waits, source by source: they do not concern each other."""
        for source_id in list(self._waiting):
            yield from self._read(source_id)

    def finish(self) -> Iterator[Match | ActivitySpan | SliceFragments | Scanned]:
        yield from self.read()
        yield from self._heard.close()
        yield self._edges()
        yield Scanned(self._parent_id, sum(skimmer.lines for skimmer in self._skimmers.values()), self._bytes)

    def _read(self, source_id: str) -> Iterator[Match | ActivitySpan]:
        waiting = self._waiting.pop(source_id)
        for item in self._skimmers.setdefault(source_id, Skimmer(self._stages.sight, self._quarantine)).read(waiting.chunks):
            if isinstance(item, ActivitySpan):
                self._heard.joined(item)
            elif isinstance(item, Record):
                yield from self._blocks(attempt(self._quarantine, "assemble", item, self._assembler.push, item) or ())
            else:
                yield from self._blocks(self._assembler.close(item.source_id))
                if item.left_out is not None:
                    self._heard.joined(item.left_out)
                self._moved_on.add(item.source_id)
                yield from self._heard.event(item)
                yield from item.matches

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[Match | ActivitySpan]:
        for block in blocks:
            self._moved_on.add(source_of(block))
            if block.unsettled or self._lacks_labels(block):
                self._heads.append(block)
            else:
                yield from matched(block, self._stages, self._heard, self._quarantine)

    def _lacks_labels(self, block: Block) -> bool:
        """Tell whether a line before this slice may have carried labels for `block`."""
        source_id = source_of(block)
        if not self._mid_stream or not block.headed or source_id in self._labelled:
            return False
        found = header_book(self._stages.formats).find(block.records[0].text)
        if found is not None and found.carries:
            self._labelled.add(source_id)
        return found is not None and found.name in self._stages.takers

    def _edges(self) -> SliceFragments:
        snapshot = loads(self._assembler.snapshot(), Snapshot)
        needy = [block for block in snapshot.open if block.unsettled or self._lacks_labels(block)]
        tail = tuple(block for block in snapshot.open if block not in needy)
        moved_on = {*self._moved_on, *map(source_of, tail)} - set(map(source_of, needy))
        clean = {source_of(block): self._redacted(block) for block in tail}
        return SliceFragments(
            self._parent_id,
            self._start,
            self._end,
            tuple(filter(None, map(self._redacted, (*self._heads, *needy)))),
            tuple(sorted(moved_on)),
            Snapshot(tuple(filter(None, clean.values())), carried=snapshot.carried),
            {source_of(block): self._said(block) for block in tail if clean[source_of(block)] not in (None, block)},
        )

    def _redacted(self, block: Block) -> Block | None:
        """Return an open block without secrets, None when it had to go into quarantine."""
        return attempt(self._quarantine, "redact", block, redacted, block, self._stages.formats, self._stages.matcher.redact)

    def _said(self, block: Block) -> EarlyMatches:
        items = matched(block, self._stages, ActivityTracker(), self._quarantine)
        return EarlyMatches(len(block.records), tuple(item for item in items if isinstance(item, Match)))


def source_of(block: Block) -> str:
    """Return the source whose records `block` holds."""
    return block.records[0].source_id


def matched(
    block: Block, stages: WorkerStages, heard: ActivityTracker, quarantine: Quarantine | None = None
) -> Iterator[Match | ActivitySpan]:
    """Yield what is to be said of a finished block: its matches, and the spans of its source that it ends. What raises goes
    into `quarantine`; without one it is raised."""
    for event in attempt(quarantine, "decode", block, decode_block, block, stages.formats) or ():
        yield from heard.event(event)
        yield from matched_of(stages.matcher, event, quarantine)
