"""Process one scope's part of a batch: join the fragments of its streams and correlate. Pure; the state is a mapping of texts.

The order of rows in a batch has no meaning: matches and spans are observed first, then those that the fragments add, then
progress and ticks, which refer to everything read before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import TypeVar

from msgspec.structs import replace

from engine.codec import dumps, loads
from engine.columns.audit import AuditResult
from engine.correlate import Correlator
from engine.model.incidents import Evidence, Finding, Verdict
from engine.model.matches import COMPONENT_LINE, ActivitySpan, Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Progress, Tick
from engine.quarantine import Quarantine, summed
from engine.spark.combining import MatchBatch, expand
from engine.spark.own import evaluate_own, event_of_notice, notice_of
from engine.spark.rows import BatchCounts, BatchRow, InputLoss, InputNotice
from engine.spark.slices import Scanned, SliceFragments, WorkerStages
from engine.spark.streams import Emission, Retraction, Streams, StreamState

PassThrough = Scanned | InputLoss | InputNotice | BatchCounts | DeadLetter | Misdated | AuditResult | Progress  # for the driver
_STREAM = "stream:"  # rules have no colon in their ids, so streams and rules share one mapping
_STREAMS = "streams"

T = TypeVar("T")


class ScopeState:
    """Takes the items of one scope batch by batch.

    Args:
        state: the state that an earlier ScopeState left; read and written key by key, as needed.
        bounded: the input has an end: events that are open there are complete.
    """

    def __init__(self, stages: WorkerStages, scope: str, state: MutableMapping[str, str], bounded: bool) -> None:
        self._state, self._bounded = state, bounded
        self._scope, self._own = scope, stages.own
        self._stored = frozenset(loads(state.get(_STREAMS, "[]"), list[str]))
        self._quarantine = Quarantine(stages.matcher.redact)
        states = {name: loads(state[_STREAM + name], StreamState) for name in self._stored}
        self._streams = Streams(stages, states, self._quarantine)
        self._matches = Counter[str]()
        self._correlator = Correlator(stages.plan, scope, state, stages.state_cache, self._quarantine, ticking=not bounded)

    def take(self, items: Iterable[BatchRow]) -> list[Finding | PassThrough]:
        """Process all items of a batch and bring the state up to date.

        Return the findings with the items for the driver: those that came in, the new dead letters, and what was counted.
        """
        batch = list(items)
        matches = [
            *_items_of(batch, Match),
            *(match for match_batch in _items_of(batch, MatchBatch) for match in expand(match_batch)),
        ]
        self._observe(sorted(matches, key=attrgetter("at")))  # in order, so that few windows are open at once
        self._observe(_items_of(batch, ActivitySpan))
        self._observe(self._streams.join(_items_of(batch, SliceFragments)))
        for progress in _items_of(batch, Progress):
            self._observe(self._close_or_settle(progress))
            self._correlator.observe(progress)
        for progress in carried_progress(_items_of(batch, Progress), self._streams.carriers()):
            self._correlator.observe(progress)
        for tick in _items_of(batch, Tick):
            self._observe(self._streams.tick())
            self._correlator.observe(tick)
        findings = self._correlator.flush()
        self._store()
        dead_letters = self._quarantine.taken()
        passed_through = [
            item
            for item in batch
            if isinstance(item, PassThrough) and not (isinstance(item, Progress) and item.read_to >= item.end)
        ]
        own_findings = self._own_findings([*batch, *dead_letters])
        return [*passed_through, *dead_letters, *findings, *own_findings, *self._quarantine.taken(), *self._counts()]

    def _counts(self) -> Iterator[BatchCounts]:
        """Yield what was counted in the batch, if anything."""
        matches = {rule: number for rule, number in sorted(self._matches.items()) if number > 0}
        if matches or self._streams.finished:
            yield BatchCounts(self._streams.finished, matches)

    def _own_findings(self, batch: Sequence[BatchRow]) -> list[Verdict | Evidence]:
        """Return the findings of the rules about tocsin in the losses, notices and dead letters of a batch."""
        at = max((item.at for item in batch if isinstance(item, Tick | InputLoss | InputNotice)), default=None)
        letters = summed([replace(letter, at=at or letter.at) for letter in _items_of(batch, DeadLetter)])
        events = [event_of_notice(item, self._scope) for item in batch if isinstance(item, InputLoss | InputNotice)]
        events += [event_of_notice(notice_of(letter), self._scope) for letter in letters]
        return evaluate_own(events, _items_of(batch, Tick), self._own, self._scope, self._state, self._quarantine)

    def _close_or_settle(self, progress: Progress) -> Iterator[Emission]:
        """Yield the emissions of the open blocks of a stream that was read to its end, if that end is final."""
        if progress.closed and progress.caught_up:
            yield from self._streams.close(progress.source_id)
        elif self._bounded and progress.caught_up:
            yield from self._streams.settle(progress.source_id)

    def _observe(self, emissions: Iterable[Emission]) -> None:
        for emission in emissions:
            if isinstance(emission, Retraction):
                for match in emission.matches:
                    self._count(match, -1)
                    self._correlator.retract(match)
            else:
                if isinstance(emission, Match):
                    self._count(emission, 1)
                self._correlator.observe(emission)

    def _count(self, match: Match, number: int) -> None:
        if not match.rule_id.startswith(COMPONENT_LINE):
            self._matches[match.rule_id] += number

    def _store(self) -> None:
        states, changed = self._streams.states, self._streams.changed
        for name in sorted(changed & states.keys()):
            self._state[_STREAM + name] = dumps(states[name])
        for name in sorted((changed & self._stored) - states.keys()):
            del self._state[_STREAM + name]
        if states.keys() != self._stored:
            self._state[_STREAMS] = dumps(sorted(states))


def carried_progress(reported: Iterable[Progress], carriers: Mapping[str, frozenset[str]]) -> list[Progress]:
    """Return the progress of the sources that are read out of streams, from the progress of these streams, ordered by source.

    A source in several streams is caught up when all of them are. Every batch that reports one stream of a source reports all
    of them.
    """
    by_stream = {progress.source_id: progress for progress in reported}
    derived = []
    for source, streams in sorted(carriers.items()):
        parts = [by_stream[stream] for stream in sorted(streams) if stream in by_stream]
        if parts:
            read_to, end = sum(part.read_to for part in parts), sum(part.end for part in parts)
            derived.append(Progress(source, read_to, end, all(part.caught_up for part in parts)))
    return derived


def _items_of(items: Iterable[BatchRow], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]
