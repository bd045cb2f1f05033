"""Join the fragments of slices with the blocks that each stream had open before. Pure.

The slices of one batch are contiguous for each stream; a gap between them (lost lines) ends the open blocks. An open block may
be matched before its end is known, when its source is quiet or the input is bounded; if it goes on after all, a retraction
takes those matches back first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from engine.codec import dumps
from engine.match.activity import ActivityTracker
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Block
from engine.model.records import parent_id as named_parent
from engine.parse import Assembler, decode_block
from engine.parse.assembling import Snapshot
from engine.quarantine import Quarantine, attempt
from engine.spark.redacting import redact_block
from engine.spark.slices import EarlyMatches, SliceFragments, WorkerStages, matched, source_of


class Retraction(Struct, frozen=True):
    """Takes back matches of an open block that has gone on; the matches of the whole block follow."""

    matches: tuple[Match, ...]


class StreamState(Struct, frozen=True):
    """The state of a stream. Its encoding in the checkpoint has the key `said` for `matched`.

    Attributes:
        end: the position that the stream was read up to.
        open: the open blocks, redacted.
        matched: the open blocks that were matched already, by source.
        waiting: the sources whose open block was there at the last tick.
        carries: the sources that are read out of the stream and are not named after it, sorted.
        early: the matches of open blocks that held a secret, made before it was redacted, by source; they hold until the block
            grows.
    """

    end: int
    open: Snapshot
    matched: Mapping[str, EarlyMatches] = field(name="said", default_factory=dict)
    waiting: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    early: Mapping[str, EarlyMatches] = field(default_factory=dict)


Emission = Match | ActivitySpan | Retraction


class Streams:
    """The streams of one scope. Every method that yields emissions updates `states` and adds the names of the streams to
    `changed`. `finished` counts the blocks that were joined and have ended: each once, although it may be matched before.

    Records and blocks that a stage fails on go into `quarantine`; without one the error is raised.
    """

    def __init__(self, stages: WorkerStages, states: Mapping[str, StreamState], quarantine: Quarantine | None = None) -> None:
        self._stages, self._quarantine = stages, quarantine
        self.states = dict(states)
        self.changed: set[str] = set()
        self.finished = 0

    def join(self, fragments: Iterable[SliceFragments]) -> Iterator[Emission]:
        """Join the fragments of slices, given in any order, with the streams."""
        for slice_fragments in sorted(
            fragments, key=lambda slice_fragments: (slice_fragments.parent_id, slice_fragments.start)
        ):
            state = self.states.get(slice_fragments.parent_id)
            if state is not None and state.end != slice_fragments.start:
                yield from self.close(slice_fragments.parent_id)
                state = StreamState(slice_fragments.start, Snapshot(), carries=state.carries)
            yield from self._join_fragments(slice_fragments, state or StreamState(slice_fragments.start, Snapshot()))

    def settle(self, parent_id: str, due: frozenset[str] | None = None) -> Iterator[Emission]:
        """Match the open blocks (of the sources `due`, or of all) as if they were complete. They stay open: if one goes on, its
        matches are retracted."""
        state = self.states.get(parent_id)
        if state is None:
            return
        matched = dict(state.matched)
        for block in state.open.open:
            if source_of(block) not in matched and (due is None or source_of(block) in due):
                matched[source_of(block)] = yield from self._match_early(block, parent_id, state)
        waiting = tuple(source for source in state.waiting if source not in matched)
        self._put(parent_id, replace(state, matched=matched, waiting=waiting))

    def close(self, parent_id: str) -> Iterator[Emission]:
        """Match the open blocks and forget the stream: it has ended, or its next slice does not follow."""
        yield from self.settle(parent_id)
        if (state := self.states.pop(parent_id, None)) is not None:
            self.finished += len(state.open.open)
            self.changed.add(parent_id)

    def tick(self) -> Iterator[Emission]:
        """Match the blocks that were open at the last tick and have not changed since."""
        for parent_id, state in list(self.states.items()):
            unmatched = tuple(source for block in state.open.open if (source := source_of(block)) not in state.matched)
            if due := frozenset(unmatched) & frozenset(state.waiting):
                yield from self.settle(parent_id, due)
            if (waiting := tuple(source for source in unmatched if source not in due)) != state.waiting:
                self._put(parent_id, replace(self.states[parent_id], waiting=waiting))

    def carriers(self) -> Mapping[str, frozenset[str]]:
        """Return the streams that each source was read out of, for the sources that are not named after their stream."""
        parents_by_source: dict[str, set[str]] = {}
        for parent_id, state in self.states.items():
            for source in state.carries:
                parents_by_source.setdefault(source, set()).add(parent_id)
        return {source: frozenset(parents) for source, parents in parents_by_source.items()}

    def _join_fragments(self, fragments: SliceFragments, state: StreamState) -> Iterator[Emission]:
        assembler = Assembler(self._stages.formats)
        assembler.restore(dumps(state.open))
        records = (record for head in fragments.heads for record in head.records)
        pushed = (attempt(self._quarantine, "assemble", record, assembler.push, record) for record in records)
        finished = [block for blocks in pushed for block in blocks or ()]
        open_blocks = assembler.open_blocks()
        finished += [block for source, block in open_blocks.items() if source in fragments.moved_on]
        continuing = (block for source, block in open_blocks.items() if source not in fragments.moved_on)
        still_open = [clean for block in continuing if (clean := self._redacted(block)) is not None]
        self.finished += len(finished)
        unmatched = [block for block in finished if not _is_matched_already(block, state)]
        changed = {source_of(block) for block in finished} | {
            source_of(block) for block in still_open if block not in state.open.open
        }
        outgrown = {
            source: early for source, early in state.matched.items() if _has_grown(early, source, (*finished, *still_open))
        }
        matched_by_source = {source: early for source, early in state.matched.items() if source not in changed}
        yield from (Retraction(early.matches) for early in outgrown.values())
        yield from self._matched(unmatched, fragments.parent_id, state)
        for block in still_open:
            if source_of(block) in outgrown:  # matched again at once, or true matches would be missing until it is settled
                matched_by_source[source_of(block)] = yield from self._match_early(block, fragments.parent_id, state)
        self._put(
            fragments.parent_id,
            StreamState(
                fragments.end,
                Snapshot((*still_open, *fragments.tail.open), carried={**state.open.carried, **fragments.tail.carried}),
                matched_by_source,
                tuple(source for source in state.waiting if source not in changed),
                _carries(fragments, state),
                {**{source: early for source, early in state.early.items() if source not in changed}, **fragments.early},
            ),
        )

    def _redacted(self, block: Block) -> Block | None:
        """Return a block redacted as a whole, since its parts may not have shown a secret; None when it went into
        quarantine."""
        return attempt(
            self._quarantine, "redact", block, redact_block, block, self._stages.formats, self._stages.matcher.redact
        )

    def _match_early(
        self, block: Block, parent_id: str, state: StreamState
    ) -> Generator[Match | ActivitySpan, None, EarlyMatches]:
        """Yield the matches and spans of an open block as it is now; return its matches."""
        items = list(self._matched([block], parent_id, state))
        yield from items
        return EarlyMatches(len(block.records), tuple(item for item in items if isinstance(item, Match)))

    def _matched(self, blocks: Iterable[Block], parent_id: str, state: StreamState) -> Iterator[Match | ActivitySpan]:
        """Yield the matches and spans of blocks. A block of `state` that held a secret and has not grown has the matches that
        were made before it was redacted."""
        activity = ActivityTracker(parent_id)
        for block in blocks:
            early = state.early.get(source_of(block))
            if early is None or len(block.records) != early.records or block not in state.open.open:
                yield from matched(block, self._stages, activity, self._quarantine)
                continue
            for event in decode_block(block, self._stages.formats):
                yield from activity.event(event)
            yield from early.matches
        yield from activity.close()

    def _put(self, parent_id: str, state: StreamState) -> None:
        if self.states.get(parent_id) != state:
            self.states[parent_id] = state
            self.changed.add(parent_id)


def _is_matched_already(block: Block, state: StreamState) -> bool:
    """Return whether exactly this block was matched already: it is open in `state` and has not grown since."""
    early = state.matched.get(source_of(block))
    return early is not None and block in state.open.open and len(block.records) == early.records


def _has_grown(early: EarlyMatches, source: str, blocks: Iterable[Block]) -> bool:
    """Return whether the block of `source`, matched early, has grown since and had matches to retract."""
    current = next((block for block in blocks if source_of(block) == source), None)
    return current is not None and len(current.records) != early.records and bool(early.matches)


def _carries(fragments: SliceFragments, state: StreamState) -> tuple[str, ...]:
    sources = {*fragments.moved_on, *map(source_of, fragments.heads), *map(source_of, fragments.tail.open)}
    added = {source for source in sources - set(state.carries) if named_parent(source) != fragments.parent_id}
    return tuple(sorted({*state.carries, *added})) if added else state.carries
