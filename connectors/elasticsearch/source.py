"""Elasticsearch and OpenSearch as a Source.

All indices that a pattern matches (by name, data stream or alias) are one stream, in which the lines of many sources are
interleaved: lines of one file may be in any shard, and after a rollover in another index. A position in it counts operations. A
loss breaks the stream, so that nothing is joined across the gap. A batch is one slice, because the lines of one file would
have no order in two tasks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from connectors.elasticsearch.by_sequence import SequenceReading
from connectors.elasticsearch.by_time import TimeReading
from connectors.elasticsearch.chunks import Chunking
from connectors.elasticsearch.cluster import SearchCluster
from connectors.elasticsearch.documents import OWN_DATASETS, DocumentReader
from connectors.elasticsearch.facts import ClusterFacts, Strategy, StrategyChoice, choose, continued
from connectors.elasticsearch.probing import probe
from connectors.elasticsearch.repeats import Repeats
from connectors.elasticsearch.timed import TimeReader
from engine.errors import SourceAway, SourceDenied, SourceError, SourceMissing
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

_ALL = {"match_all": dict[str, Any]()}
BY = "by"  # in an offset: its strategy

_MEMORIES: dict[tuple[int, str], _Memory] = {}


class IndicesFound(Struct, frozen=True):
    """The indices to read, and the strategy. `documents`: how many a first run would read at most."""

    cluster: ClusterFacts
    choice: StrategyChoice
    documents: int


class _Memory(Struct, frozen=True):
    """The part of a source that a process keeps between batches, for each of which the source is opened again."""

    reader: DocumentReader
    repeats: Repeats


@dataclass
class ElasticsearchSource:
    """Reads the documents in `indices` as lines, each the JSON of a document.

    A line belongs to the source `<indices>/<host>:<file>`, with host and file of the document. `labels` may contain templates
    (see labels); a host that the document names is the label `host`.

    Args:
        connection: the fields of an ElasticsearchConnection.
        indices: a comma list of indices, aliases, data streams, or patterns of them.
        start: where a first run starts: `earliest`, `latest`, or an ISO time. An index that appears later is read from its
            beginning.
        final: the input ends where it ends at the first look.
        query: selects documents, in Elasticsearch's query DSL; None: all.
        read_by: a Strategy; if earlier runs used another one, it continues where that one ended. Empty: the strategy of earlier
            runs, and in a first run the safest that is possible.
        overlap_s: for how long strategies by time search for late documents; None: the default of the strategy.

    Every method raises SourceError (SourceMissing, SourceDenied, SourceAway), with a sentence for the user, when a request
    fails.
    """

    connection: Mapping[str, Any]
    indices: str
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    query: Mapping[str, Any] | None = None
    read_by: str = ""
    overlap_s: float | None = None
    _readings: dict[str, SequenceReading | TimeReading] = field(default_factory=dict, repr=False)
    _by: str = field(default="", repr=False)

    def initial(self) -> Offset:
        """Return the offset at which a first run starts."""
        with self._awaited():
            self._by = self.look().choice.strategy
            return {**self._reading(self._by).initial(self.start), BY: self._by}

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset up to which can be read now, at most about `max_lines` operations after `start`. A batch that
        changes the strategy reads nothing."""
        self._by = start[BY]
        with self._awaited():
            if self.read_by and self.read_by != self._by:
                return self._changed_over(start)
            return {**self._reading(self._by).latest(_own(start), max_lines), BY: self._by}

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return one slice, whatever the parallelism; none when there is nothing to read."""
        if start[BY] != end[BY]:
            return []
        slice_ = self._reading(end[BY]).slice(_own(start), _own(end))
        return [{**slice_, BY: end[BY]}] if slice_ is not None else []

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice, those of a source in a page as one chunk. Raises an ExceptionGroup of DataLoss for lost
        operations, after all the others were yielded.
        """
        memory = self._memory(slice_[BY])
        with self._awaited():
            yield from self._reading(slice_[BY]).chunks(slice_, memory.reader, memory.repeats)

    def around(self, index: str, id: str) -> Iterator[Chunk]:
        """Yield the lines of a document and of those around its time, with its host and file; none when there is no such
        document any more."""
        by_time = TimeReader(self._cluster, self.indices, Strategy.TIMESTAMP, self.query)
        document, reader = by_time.document(index, id), DocumentReader(self._stream, self.labels)
        if document is not None:
            hits = by_time.near(document, reader.alike(document))
            yield from Chunking(self._stream, 0).chunks(list(reader.lines(hits)))

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress at `end`, of the input that existed when it was planned."""
        return self._reading(end[BY]).progress(_own(end))

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return, by name, the error of each index that is skipped."""
        return self._reading(self._by).unreadable() if self._by else {}

    def look(self, before: Offset | None = None, written: Sequence[str] = ()) -> IndicesFound:
        """Return the present indices, and the strategy that reads them.

        Args:
            before: the offset of earlier runs; None for a first run.
            written: the indices that tocsin writes incidents to.
        """
        facts = probe(self._cluster, self.indices)
        choice = choose(facts, self.read_by, self.overlap_s)
        if before is not None:
            choice = continued(choice, facts, Strategy(before[BY]), self.read_by, self.overlap_s)
        documents, own = self._cluster.count(self.indices, self.query or _ALL), self._own_documents(written)
        if self.query and not documents and (others := self._cluster.count(self.indices, _ALL)):
            warning = f"the query selects none of the {others} documents; check `query`"
            choice = replace(choice, warnings=(*choice.warnings, warning))
        if own:
            choice = replace(choice, warnings=(*choice.warnings, f"{own} are skipped: they are not logs"))
        return IndicesFound(facts, choice, documents)

    def _own_documents(self, written: Sequence[str]) -> str:
        """Return a phrase for the documents that tocsin wrote; empty when there are none."""
        covered = [name for name in written if fnmatchcase(name, self.indices)]
        if covered:
            return f"the incidents that tocsin writes to {' and '.join(covered)}"
        count = self._cluster.count(self.indices, {"terms": {"event.dataset": list(OWN_DATASETS)}})
        return f"{count} incidents that a tocsin wrote" if count else ""

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """Turn a refusal into SourceAway for a run without end, which waits: a key may be renewed, a privilege granted."""
        try:
            yield
        except (SourceDenied, SourceMissing) as refusal:
            if self.final:
                raise
            raise SourceAway(self.indices, str(refusal)) from None

    @property
    def _cluster(self) -> SearchCluster:
        return SearchCluster.of(self.connection)

    @property
    def _stream(self) -> str:
        return self.indices.replace("#", "%23")

    def _reading(self, by: str) -> SequenceReading | TimeReading:
        if by not in self._readings:
            self._readings[by] = self._opened(Strategy(by))
        return self._readings[by]

    def _opened(self, strategy: Strategy) -> SequenceReading | TimeReading:
        if strategy is Strategy.SEQUENCE:
            return SequenceReading(self._cluster, self.indices, self._stream, self.query, self.final)
        return TimeReading(self._cluster, self.indices, self._stream, strategy, self.query, self.overlap_s, self.final)

    def _changed_over(self, start: Offset) -> Offset:
        """Return the offset at which the strategy `read_by` continues after another strategy has read up to `start`. Losses of
        the other strategy are reported first, in a batch of its own."""
        before, after = self._reading(start[BY]), self._reading(self.read_by)
        place = start.get("place", 0)
        if isinstance(after, SequenceReading):
            assert isinstance(before, TimeReading)
            return {**after.taken_over(before.read_from(_own(start)), Strategy(start[BY]).field, place), BY: self.read_by}
        if isinstance(before, TimeReading):
            return {**after.taken_over(before.read_from(_own(start)), place), BY: self.read_by}
        try:
            if (losing := before.losing(_own(start))) is not None:
                return {**losing, BY: start[BY]}
            at_ms = before.unread_from(_own(start), Strategy(self.read_by).field)
        except SourceDenied:  # the unread documents cannot be determined
            return {**after.initial(self.start), "place": place, BY: self.read_by}
        return {**after.taken_over(at_ms, place), BY: self.read_by}

    def _memory(self, by: str) -> _Memory:
        settings = [dict(self.connection), self.indices, dict(self.labels), self.query, by]
        key = os.getpid(), json.dumps(settings, sort_keys=True)
        if key not in _MEMORIES:
            _MEMORIES[key] = _Memory(DocumentReader(self._stream, self.labels), Repeats())
        return _MEMORIES[key]


def _own(offset: Offset) -> Offset:
    return {name: value for name, value in offset.items() if name != BY}
