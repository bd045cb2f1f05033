"""Joining the edges of slices: what each stream still had open when it was last read. Pure.

The slices of one batch come in order and contiguous for each stream; a gap between them (lost lines) ends whatever was open.
An open event may be matched before its end is known (its source is quiet, or the input is bounded); should it go on after
all, those matches are taken back first.
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
from engine.spark.redacting import redacted
from engine.spark.slices import EarlyMatches, SliceFragments, WorkerStages, matched, source_of


class Retraction(Struct, frozen=True):
    """These matches were said too early: forget them; what is right follows."""

    matches: tuple[Match, ...]


class StreamState(Struct, frozen=True):
    """Where a stream stands: read up to `end`, with `open` blocks, from which secrets are taken out.

    `said` are the blocks matched already, by source. `waiting` are the sources whose open block was there at the last tick.
    `carries` are the sources read out of it whose names do not tell so, sorted. `early` is what open blocks that held a secret
    said with it: it holds as long as nothing is added to them.
    """

    end: int
    open: Snapshot
    said: Mapping[str, EarlyMatches] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    early: Mapping[str, EarlyMatches] = field(default_factory=dict)


Emission = Match | ActivitySpan | Retraction


class Streams:
    """The streams of one scope. Every method yields what there is to say and updates `states`; `changed` names them.
    What raises goes into `quarantine`; without one it is raised."""

    def __init__(self, stages: WorkerStages, states: Mapping[str, StreamState], quarantine: Quarantine | None = None) -> None:
        self._stages, self._quarantine = stages, quarantine
        self.states = dict(states)
        self.changed: set[str] = set()

    def join(self, edges: Iterable[SliceFragments]) -> Iterator[Emission]:
        """Take in the edges of slices, in any order."""
        for edge in sorted(edges, key=lambda edge: (edge.parent_id, edge.start)):
            state = self.states.get(edge.parent_id)
            if state is not None and state.end != edge.start:
                yield from self.close(edge.parent_id)
                state = StreamState(edge.start, Snapshot(), carries=state.carries)
            yield from self._joined(edge, state or StreamState(edge.start, Snapshot()))

    def settle(self, parent_id: str, due: frozenset[str] | None = None) -> Iterator[Emission]:
        """Match what is open (of the sources `due`, or of all) as if nothing more came; it stays, and is taken back should it
        go on."""
        state = self.states.get(parent_id)
        if state is None:
            return
        said = dict(state.said)
        for block in state.open.open:
            if source_of(block) not in said and (due is None or source_of(block) in due):
                said[source_of(block)] = yield from self._said(block, parent_id, state)
        waiting = tuple(source for source in state.waiting if source not in said)
        self._put(parent_id, replace(state, said=said, waiting=waiting))

    def close(self, parent_id: str) -> Iterator[Emission]:
        """Match what is open and forget the stream: nothing more comes, or what comes does not follow it."""
        yield from self.settle(parent_id)
        if self.states.pop(parent_id, None) is not None:
            self.changed.add(parent_id)

    def tick(self) -> Iterator[Emission]:
        """Match what was open at the last tick already and has not changed since."""
        for parent_id, state in list(self.states.items()):
            unsaid = tuple(source for block in state.open.open if (source := source_of(block)) not in state.said)
            if due := frozenset(unsaid) & frozenset(state.waiting):
                yield from self.settle(parent_id, due)
            if (waiting := tuple(source for source in unsaid if source not in due)) != state.waiting:
                self._put(parent_id, replace(self.states[parent_id], waiting=waiting))

    def carriers(self) -> Mapping[str, frozenset[str]]:
        """Return, for every source whose name does not tell what it is read out of, the streams that it was found in."""
        found: dict[str, set[str]] = {}
        for parent_id, state in self.states.items():
            for source in state.carries:
                found.setdefault(source, set()).add(parent_id)
        return {source: frozenset(parents) for source, parents in found.items()}

    def _joined(self, edge: SliceFragments, state: StreamState) -> Iterator[Emission]:
        assembler = Assembler(self._stages.formats)
        assembler.restore(dumps(state.open))
        records = (record for head in edge.heads for record in head.records)
        pushed = (attempt(self._quarantine, "assemble", record, assembler.push, record) for record in records)
        done = [block for blocks in pushed for block in blocks or ()]
        opened = assembler.open_blocks()
        done += [block for source, block in opened.items() if source in edge.moved_on]
        going_on = (block for source, block in opened.items() if source not in edge.moved_on)
        kept = [clean for block in going_on if (clean := self._redacted(block)) is not None]
        news = [block for block in done if not _is_said(block, state)]
        moved = {source_of(block) for block in done} | {source_of(block) for block in kept if block not in state.open.open}
        grown = {source: said for source, said in state.said.items() if _has_grown(said, source, (*done, *kept))}
        said = {source: each for source, each in state.said.items() if source not in moved}
        yield from (Retraction(each.matches) for each in grown.values())
        yield from self._matched(news, edge.parent_id, state)
        for block in kept:
            if source_of(block) in grown:  # said at once again, or what is true would be denied until it is settled
                said[source_of(block)] = yield from self._said(block, edge.parent_id, state)
        self._put(
            edge.parent_id,
            StreamState(
                edge.end,
                Snapshot((*kept, *edge.tail.open), carried={**state.open.carried, **edge.tail.carried}),
                said,
                tuple(source for source in state.waiting if source not in moved),
                _carries(edge, state),
                {**{source: each for source, each in state.early.items() if source not in moved}, **edge.early},
            ),
        )

    def _redacted(self, block: Block) -> Block | None:
        """Return a block without secrets, which its parts alone may not have shown; None when it had to go into quarantine."""
        return attempt(self._quarantine, "redact", block, redacted, block, self._stages.formats, self._stages.matcher.redact)

    def _said(self, block: Block, parent_id: str, state: StreamState) -> Generator[Match | ActivitySpan, None, EarlyMatches]:
        """Yield what an open block says so far, and return that."""
        found = list(self._matched([block], parent_id, state))
        yield from found
        return EarlyMatches(len(block.records), tuple(item for item in found if isinstance(item, Match)))

    def _matched(self, blocks: Iterable[Block], parent_id: str, state: StreamState) -> Iterator[Match | ActivitySpan]:
        """Yield what blocks say; of one that held a secret in `state` and has not grown, what it said with it."""
        heard = ActivityTracker(parent_id)
        for block in blocks:
            early = state.early.get(source_of(block))
            if early is None or len(block.records) != early.records or block not in state.open.open:
                yield from matched(block, self._stages, heard, self._quarantine)
                continue
            for event in decode_block(block, self._stages.formats):
                yield from heard.event(event)
            yield from early.matches
        yield from heard.close()

    def _put(self, parent_id: str, state: StreamState) -> None:
        if self.states.get(parent_id) != state:
            self.states[parent_id] = state
            self.changed.add(parent_id)


def _is_said(block: Block, state: StreamState) -> bool:
    """Tell whether exactly this block was matched already: it starts its source's part of the state and has not grown."""
    said = state.said.get(source_of(block))
    return said is not None and block in state.open.open and len(block.records) == said.records


def _has_grown(said: EarlyMatches, source: str, blocks: Iterable[Block]) -> bool:
    """Tell whether the block of `source` that was matched too early has gone on."""
    now = next((block for block in blocks if source_of(block) == source), None)
    return now is not None and len(now.records) != said.records and bool(said.matches)


def _carries(edge: SliceFragments, state: StreamState) -> tuple[str, ...]:
    found = {*edge.moved_on, *map(source_of, edge.heads), *map(source_of, edge.tail.open)}
    fresh = {source for source in found - set(state.carries) if named_parent(source) != edge.parent_id}
    return tuple(sorted({*state.carries, *fresh})) if fresh else state.carries
