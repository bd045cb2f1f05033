"""One scope's part of a batch: streams are joined, what they say is correlated. Pure; the state is a mapping of text.

Within a batch the order of rows means nothing: matches and spans come first, then what the edges add, then progress and ticks,
which speak of everything read before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import TypeVar

from msgspec.structs import replace

from engine.codec import dumps, loads
from engine.correlate import Correlator
from engine.model.incidents import Evidence, Finding, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.quarantine import DeadLetter, Misdated
from engine.model.records import Progress, Tick
from engine.quarantine import Quarantine, summed
from engine.spark.combining import MatchBatch, expanded
from engine.spark.own import event, judged, notice_of
from engine.spark.rows import BatchRow, InputLoss, InputNotice
from engine.spark.slices import Scanned, SliceFragments, WorkerStages
from engine.spark.streams import Emission, Retraction, Streams, StreamState

Passed = Scanned | InputLoss | InputNotice | DeadLetter | Misdated  # what is only passed on
_STREAM = "stream:"  # rules have no colon in their ids, so streams and rules share one mapping
_STREAMS = "streams"

T = TypeVar("T")


class ScopeState:
    """Takes the items of one scope batch by batch.

    Args:
        state: what an earlier ScopeState left there; read and written key by key, as needed.
        bounded: the input ends when it is read to its end, so that what is open then is final.
    """

    def __init__(self, stages: WorkerStages, scope: str, state: MutableMapping[str, str], bounded: bool) -> None:
        self._state, self._bounded = state, bounded
        self._scope, self._own = scope, stages.own
        self._stored = frozenset(loads(state.get(_STREAMS, "[]"), list[str]))
        self._quarantine = Quarantine(stages.matcher.redact)
        states = {name: loads(state[_STREAM + name], StreamState) for name in self._stored}
        self._streams = Streams(stages, states, self._quarantine)
        self._correlator = Correlator(stages.plan, scope, state, stages.resting, self._quarantine, ticking=not bounded)

    def take(self, items: Iterable[BatchRow]) -> list[Finding | Passed]:
        """Take all items of a batch; return the findings, and what is only passed on. The state then holds the batch."""
        batch = list(items)
        matches = [*_of(batch, Match), *(match for some in _of(batch, MatchBatch) for match in expanded(some))]
        self._tell(sorted(matches, key=attrgetter("at")))  # what a match opens and another ends is not kept all at once
        self._tell(_of(batch, ActivitySpan))
        self._tell(self._streams.join(_of(batch, SliceFragments)))
        for progress in _of(batch, Progress):
            self._tell(self._ended(progress))
            self._correlator.observe(progress)
        for progress in carried(_of(batch, Progress), self._streams.carriers()):
            self._correlator.observe(progress)
        for tick in _of(batch, Tick):
            self._tell(self._streams.tick())
            self._correlator.observe(tick)
        found = self._correlator.flush()
        self._store()
        aside = self._quarantine.taken()
        passed = [each for each in batch if isinstance(each, Passed)]
        ours = self._of_ourselves([*batch, *aside])
        return [*passed, *aside, *found, *ours, *self._quarantine.taken()]

    def _of_ourselves(self, batch: Sequence[BatchRow]) -> list[Verdict | Evidence]:
        """Say what lost lines, stalls and dead letters of our own input mean."""
        at = max((each.at for each in batch if isinstance(each, Tick | InputLoss | InputNotice)), default=None)
        letters = summed([replace(each, at=at or each.at) for each in _of(batch, DeadLetter)])
        said = [event(each, self._scope) for each in batch if isinstance(each, InputLoss | InputNotice)]
        said += [event(notice_of(each), self._scope) for each in letters]
        return judged(said, _of(batch, Tick), self._own, self._scope, self._state, self._quarantine)

    def _ended(self, progress: Progress) -> Iterator[Emission]:
        """Say what is open in a stream that is read to its end, when that end is final."""
        if progress.closed and progress.caught_up:
            yield from self._streams.close(progress.source_id)
        elif self._bounded and progress.caught_up:
            yield from self._streams.settle(progress.source_id)

    def _tell(self, said: Iterable[Emission]) -> None:
        for item in said:
            if isinstance(item, Retraction):
                for match in item.matches:
                    self._correlator.retract(match)
            else:
                self._correlator.observe(item)

    def _store(self) -> None:
        states, changed = self._streams.states, self._streams.changed
        for name in sorted(changed & states.keys()):
            self._state[_STREAM + name] = dumps(states[name])
        for name in sorted((changed & self._stored) - states.keys()):
            del self._state[_STREAM + name]
        if states.keys() != self._stored:
            self._state[_STREAMS] = dumps(sorted(states))


def carried(said: Iterable[Progress], carriers: Mapping[str, frozenset[str]]) -> list[Progress]:
    """Return what progress of streams says of the sources read out of them: one that is in several has been read to its end
    when they all have been. A stream says how far it is in every batch that any of its source's streams is in."""
    by_stream = {progress.source_id: progress for progress in said}
    found = []
    for source, streams in sorted(carriers.items()):
        parts = [by_stream[stream] for stream in sorted(streams) if stream in by_stream]
        if parts:
            read_to, end = sum(part.read_to for part in parts), sum(part.end for part in parts)
            found.append(Progress(source, read_to, end, all(part.caught_up for part in parts)))
    return found


def _of(items: Iterable[BatchRow], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]
