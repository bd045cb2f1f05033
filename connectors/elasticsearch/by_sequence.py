"""The strategy `sequence`: its offsets, slices and chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from connectors.elasticsearch.chunks import Chunking
from connectors.elasticsearch.cluster import SearchCluster, batched
from connectors.elasticsearch.documents import DocumentReader, IndexedLine
from connectors.elasticsearch.facts import IndexFacts
from connectors.elasticsearch.merging import merged
from connectors.elasticsearch.offsets import (
    REWOUND,
    Checkpoints,
    LostOperations,
    SequenceOffset,
    SequenceRange,
    advanced,
    aligned,
    at_beginning,
    at_end,
    lost_operations,
    ranges,
    short,
    since,
)
from connectors.elasticsearch.repeats import Repeats
from connectors.elasticsearch.sequence import CheckpointWatch, ShardReader
from connectors.elasticsearch.timed import MISSING
from engine.codec import made, plain
from engine.errors import DataLoss, SourceAway, SourceDenied, SourceError, SourceMissing
from engine.model.records import Progress
from engine.ports import Chunk, Offset

MOST_MOVED = 5_000  # operations by which the end of a batch in a shard may be moved
REPLACED = "the index was deleted and created again before all of it was read"


class SequenceReading:
    """Reads the indices that `pattern` matches by sequence numbers. `final`: the input ends where it ends at the first look."""

    def __init__(
        self, cluster: SearchCluster, pattern: str, stream: str, query: Mapping[str, Any] | None, final: bool = False
    ) -> None:
        self._cluster, self._pattern, self._stream = cluster, pattern, stream
        self._query, self._final = query, final
        self._watch = CheckpointWatch(cluster, pattern)
        self._bounds: Sequence[Checkpoints] | None = None

    def initial(self, start: str) -> Offset:
        """Return the offset at which a first run starts. Without the privilege to refresh indices it waits until they have
        refreshed themselves: a document that cannot be searched yet would count as older than the start."""
        now = self._look(wait=True)
        if start == "earliest":
            return plain(at_beginning(now))  # type: ignore[no-any-return]
        if start == "latest":
            return plain(at_end(now))  # type: ignore[no-any-return]
        return plain(self._since(now, int(datetime.fromisoformat(start).timestamp() * 1000), "@timestamp"))  # type: ignore[no-any-return]

    def taken_over(self, at_ms: int, field: str, place: int) -> Offset:
        """Return the offset that continues reading by the time in `field`: at the first document of each shard whose time is
        not before `at_ms`. `place` is the position in the stream."""
        return plain(replace(self._since(self._look(wait=True), at_ms, field), place=place))  # type: ignore[no-any-return]

    def unread_from(self, start: Offset, field: str) -> int | None:
        """Return the earliest time in `field`, in milliseconds since 1970, of the documents that are unread at `start`; None
        when no unread document has one."""
        end = made(self.latest(start, None), SequenceOffset)
        firsts = [self._first(entry, [], [_by_time(field)]) for entry in ranges(made(start, SequenceOffset), end)]
        return min((first[0] for first in firsts if first and first[0] not in (None, MISSING)), default=None)

    def losing(self, start: Offset) -> Offset | None:
        """Return the end of a batch that reads nothing and reports lost operations; None when there are none."""
        end = self.latest(start, 0)
        return end if lost_operations(made(start, SequenceOffset), made(end, SequenceOffset)) else None

    def latest(self, start: Offset, most: int | None) -> Offset:
        """Return the end of the next batch, about `most` operations after `start` (None: no limit)."""
        before, now = made(start, SequenceOffset), self._look()
        open_ids = frozenset(short(entry.uuid) for entry in now)
        exists = open_ids if open_ids.issuperset(before.indices) else self._watch.exists() | open_ids
        if not exists and not self._final:
            raise SourceAway(f"{self._pattern} on {self._cluster.place}", _nothing(self._pattern, self._cluster))
        after = advanced(before, now, exists, most)
        return plain(after if most is None else aligned(before, after, self._cut))  # type: ignore[no-any-return]

    def slice(self, start: Offset, end: Offset) -> Mapping[str, Any] | None:
        """Return the slice of a batch; None when there is nothing to read and nothing is lost."""
        before, after = made(start, SequenceOffset), made(end, SequenceOffset)
        wanted, lost = ranges(before, after), lost_operations(before, after)
        if not wanted and not lost:
            return None
        place = before.place + sum(entry.to - entry.after for entry in lost)
        return {"ranges": plain(wanted), "lost": plain(lost), "place": place, "end": after.place}

    def chunks(self, slice_: Mapping[str, Any], reader: DocumentReader, repeats: Repeats) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises an ExceptionGroup of DataLoss for lost operations, after all the others were
        yielded."""
        wanted = made(slice_["ranges"], list[SequenceRange])
        facts_by_name = self._unchanged(wanted)
        present = [entry for entry in wanted if entry.index in facts_by_name]
        lost = [_replaced(entry) for entry in wanted if entry.index not in facts_by_name]
        chunking = Chunking(self._stream, slice_["place"])
        pages = [self._line_pages(entry, facts_by_name[entry.index], reader, repeats, lost) for entry in present]
        with repeats.slice(slice_["place"]):
            for lines in merged(pages) if pages else ():
                yield from chunking.chunks(lines)
        lost += self._changed(present, facts_by_name, {(entry.index, entry.shard) for entry in lost})
        if not lost:
            yield from chunking.reached(slice_["end"])
        if lost := made(slice_["lost"], list[LostOperations]) + lost:
            raise ExceptionGroup("lines are lost", [self._loss(entry) for entry in lost])

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return the progress at `end`, of the operations that existed when it was planned."""
        offset = made(end, SequenceOffset)
        behind = offset.behind
        return [Progress(self._stream, offset.place, offset.place + behind, caught_up=not behind)]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return, by name, the error of each index that cannot be read by sequence numbers, or not now."""
        return {index.name: error for index in self._watch.indices if (error := _obstacle(index, self._watch.lags)) is not None}

    def count(self) -> int:
        """Return the number of operations in all indices."""
        return sum(at + 1 for entry in self._look() for at in entry.at if at is not None)

    def _look(self, wait: bool = False) -> Sequence[Checkpoints]:
        if self._bounds is not None:
            return self._bounds
        now = self._watch.now(wait or self._final)
        if self._final:
            if not now:
                raise SourceMissing(_nothing(self._pattern, self._cluster))
            self._bounds = now
        return now

    def _since(self, now: Sequence[Checkpoints], at_ms: int, field: str) -> SequenceOffset:
        return since(now, lambda entry, shard: self._first_after(entry, shard, at_ms, field))

    def _first_after(self, entry: Checkpoints, shard: int, at_ms: int, field: str) -> int | None:
        """Return the sequence number of the first document of a shard whose time in `field` is not before `at_ms`; None without
        one."""
        late = {"range": {field: {"gte": at_ms, "format": "epoch_millis"}}}
        body = {"size": 1, "sort": ["_seq_no"], "track_total_hits": False, "source": False, "query": late}
        hits = self._cluster.shard_page(entry.name, shard, body).hits
        return hits[0].sort[0] if hits else None

    def _cut(self, unread: Sequence[SequenceRange], planned: Sequence[int]) -> Sequence[int] | None:
        """Return the last operation to read of each shard so that all shards end at one time: that of the next document of the
        shard with the most unread operations. The lines of a stack trace may be in all shards. None when this time is unknown,
        or when it would move an end by MOST_MOVED or more."""
        left = [replace(entry, after=number) for entry, number in zip(unread, planned, strict=True)]
        try:
            times = self._first(max(left, key=lambda entry: entry.to - entry.after), [], ["_seq_no", _by_time("@timestamp")])
            if times is None or times[1] in (None, MISSING):
                return None
            later = {"range": {"@timestamp": {"gt": times[1], "format": "epoch_millis"}}}
            firsts = [self._first(entry, [later], ["_seq_no"]) for entry in unread]
        except SourceMissing:
            return None
        numbers = [entry.to if first is None else first[0] - 1 for entry, first in zip(unread, firsts, strict=True)]
        moved = max(abs(number - at) for number, at in zip(numbers, planned, strict=True))
        return numbers if moved < MOST_MOVED else None

    def _first(self, within: SequenceRange, filters: Sequence[Any], sort: Sequence[Any]) -> Sequence[Any] | None:
        """Return the sort values of the first document in a range; None when there is none."""
        numbered = {"range": {"_seq_no": {"gt": within.after, "lte": within.to}}}
        body = {"size": 1, "sort": sort, "track_total_hits": False, "source": False}
        query = {"bool": {"filter": [numbered, *filters]}}
        hits = self._cluster.shard_page(within.index, within.shard, {**body, "query": query}).hits
        return hits[0].sort if hits else None

    def _unchanged(self, wanted: Sequence[SequenceRange]) -> Mapping[str, IndexFacts]:
        """Return, by name, the indices of `wanted` that still have the same uuid. Raises SourceAway when one cannot be searched
        now: a search of it returns no documents, which would count as none."""
        ids = {entry.index: entry.id for entry in wanted}
        facts = [index for index in self._cluster.named(sorted(ids)) if short(index.uuid) == ids[index.name]]
        for index in facts:
            if not index.readable:
                raise SourceAway(index.name, f"{index.name} is closed or frozen, and cannot be read now")
        return {index.name: index for index in facts}

    def _changed(
        self, wanted: Sequence[SequenceRange], facts_by_name: Mapping[str, IndexFacts], known: Set[tuple[str, int]]
    ) -> list[LostOperations]:
        """Return the ranges that changed while a batch read them: their index was deleted or created again, or their shard was
        rewound. Shards in `known` (index, shard) are left out."""
        now = self._checkpoints_now(facts_by_name)
        others = {entry.index for entry in wanted if entry.index not in now or short(now[entry.index].uuid) != entry.id}
        if others:  # deleted, created again, or closed; a closed one raises
            others -= self._unchanged([entry for entry in wanted if entry.index in others]).keys()
        lost = [_replaced(entry) for entry in wanted if entry.index in others]
        lost += [
            _rewound(entry) for entry in wanted if entry.index in now.keys() - others and not entry.is_of(now[entry.index])
        ]
        return [entry for entry in lost if (entry.index, entry.shard) not in known]

    def _checkpoints_now(self, facts_by_name: Mapping[str, IndexFacts]) -> Mapping[str, Checkpoints]:
        def facts_of(name: str, uuid: str) -> IndexFacts:
            facts = facts_by_name.get(name)
            return facts if facts is not None and facts.uuid == uuid else IndexFacts(name, uuid)

        names = batched(sorted(facts_by_name))
        return {entry.name: entry for some in names for entry in self._cluster.checkpoints(",".join(some), facts_of)}

    def _line_pages(
        self,
        wanted: SequenceRange,
        index: IndexFacts,
        reader: DocumentReader,
        repeats: Repeats,
        lost: list[LostOperations],
    ) -> Iterator[Sequence[IndexedLine]]:
        for page in ShardReader(self._cluster, self._query, index.page_bound).pages(wanted):
            if isinstance(page, LostOperations):
                lost.append(page)
            else:
                yield list(repeats.new(reader.lines(page)))

    def _loss(self, lost: LostOperations) -> DataLoss:
        return DataLoss(f"{lost.index}[{lost.shard}]", lost.after + 1, lost.to + 1, lost.why)


def _by_time(field: str) -> Mapping[str, Any]:
    return {field: {"order": "asc", "unmapped_type": "date", "numeric_type": "date"}}  # OpenSearch has no `format`


def _obstacle(index: IndexFacts, lags: bool) -> SourceError | None:
    if index.readable and not index.numbered:
        return SourceError(f"{index.name}: its sequence numbers are disabled; read it by time with `read_by: ingested`")
    if index.readable and lags and index.refresh_s == 0:
        return SourceDenied(f"{index.name}: it never refreshes, and the privilege `maintenance` to refresh it is missing")
    return None


def _replaced(entry: SequenceRange) -> LostOperations:
    return LostOperations(entry.index, entry.shard, entry.after, entry.to, REPLACED)


def _rewound(entry: SequenceRange) -> LostOperations:
    return LostOperations(entry.index, entry.shard, entry.after, entry.to, REWOUND)


def _nothing(pattern: str, cluster: SearchCluster) -> str:
    return (
        f"{pattern} on {cluster.place} matches no index; check `indices`, and the privileges `read` and `view_index_metadata`"
    )
