"""A Kafka topic as a Source.

A partition is one physical stream that many sources (files of hosts, or whatever keys name) are printed into, interleaved. It
is read in ranges of offsets that follow each other without a hole, so it is the partition whose slices are contiguous, and its
chunks carry its name as their `stream`: that is what lets the head of a stack trace in one batch find its tail in another,
whoever wrote between. A line's offset is `record offset * RECORD_POSITIONS + byte within the record`: it grows along every
source in the partition, is never given twice, and does not depend on how the topic was cut into batches. Offsets without a
record are spanned by empty chunks; a range that is lost is not, so that nothing is joined across it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import Any

from confluent_kafka import Message
from msgspec.structs import replace

from connectors.kafka.cluster import Cluster, Log
from connectors.kafka.documents import Documents, Whose, stream_name
from connectors.kafka.joining import JOINED_BYTES, Joining, RecordOrigin, RecordRun
from connectors.kafka.labels import fields_asked, filled
from connectors.kafka.offsets import (
    RECORD_POSITIONS,
    LostOffsets,
    OffsetRange,
    PartitionPosition,
    PartitionPositions,
    advanced,
    ranges,
    recreated,
)
from connectors.kafka.reading import LIVE_PATIENCE_S, PATIENCE_S, reading
from engine.codec import made, plain
from engine.errors import DataLoss, SourceAway, SourceError, SourceMissing
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

ORIGINS = 10_000  # that are remembered

_documents = lru_cache(16)(Documents)  # of a process, for a source lives no longer than a batch there


@dataclass
class KafkaSource:
    """Reads the committed records of `topic` as lines.

    A record is one or more lines, or a shipper's JSON document around one (see records.py). Its lines belong to the source
    `<topic>/<host>:<file>`, to `<topic>/<key>`, or to `<topic>-<partition>`, by what the record says. The record's time is when
    the lines were taken. `labels` may hold what labels.py describes; a host that is known is the label `host`.

    Args:
        bootstrap_servers: `host:port,...`.
        options: passed on to librdkafka (see options.py).
        start: where a first run starts: `earliest`, `latest`, or an ISO time. A topic or partition that appears later is read
            from its beginning.
        final: the input is bounded by what is there at the first look.

    Every method raises SourceError (SourceMissing, SourceDenied, SourceAway) as a sentence when the cluster refuses.
    """

    bootstrap_servers: str
    topic: str
    labels: Labels = field(default_factory=dict)
    start: str = "earliest"
    final: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    _bounds: Mapping[int, int] | None = field(default=None, repr=False)
    _origins: dict[object, RecordOrigin] = field(default_factory=dict, repr=False)

    def initial(self) -> Offset:
        """Return where a first run starts; a topic that is not there yet is read from its beginning once it is."""
        try:
            log = self._look()
        except SourceMissing:
            if self.final:
                raise
            return {}
        begins = self._begin(log)
        return _offset({p: PartitionPosition(min(begins[p], end), end, log.id) for p, end in log.ends.items() if p in begins})

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return how far can be read now, at most `max_lines` records past `start`.

        A topic that is not there is away as long as the input has no end.
        """
        try:
            log = self._look()
        except SourceMissing as missing:
            if self.final:
                raise
            raise SourceAway(f"the topic {self.topic} on {self.bootstrap_servers}", str(missing)) from None
        return _offset(advanced(_positions(start), log.begins, log.ends, max_lines, log.id))

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return up to `parallelism` slices of ranges: with one, the same consumer always goes on where it stands."""
        before, after = _positions(start), _positions(end)
        slices: list[list[OffsetRange]] = [[] for _ in range(max(1, parallelism))]
        for each in sorted(ranges(before, after), key=lambda each: each.start - each.end):
            min(slices, key=lambda slice_: sum(r.end - r.start for r in slice_)).append(each)
        lost = recreated(before, after)
        return [
            {"ranges": plain(slice_), "lost": plain(lost if at == 0 else [])}
            for at, slice_ in enumerate(slices)
            if slice_ or (lost and at == 0)
        ]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice; what is gone raises after everything that is left was yielded.

        Records of a source that are read at about the same time are one chunk.
        """
        lost = made(slice_["lost"], list[LostOffsets])
        wanted = made(slice_["ranges"], list[OffsetRange])
        joinings = {each.partition: self._joining(each.partition, each.start) for each in wanted}
        patience_s = PATIENCE_S if self.final else LIVE_PATIENCE_S
        for item in reading(self.bootstrap_servers, self.options, self.topic, wanted, patience_s):
            if isinstance(item, LostOffsets):
                lost.append(item)
                yield from joinings[item.partition].rest()
                joinings[item.partition] = self._joining(item.partition, item.end)
            else:
                partition = item[0].partition()
                yield from self._joined(item, partition, joinings[partition])
        for each in wanted:
            joining = joinings[each.partition]
            yield from joining.reached(place(each.end))
            yield from joining.rest()
        if lost:
            raise ExceptionGroup("lines are gone", [self._loss(each) for each in lost])

    def _joining(self, partition: int, start: int) -> Joining:
        return Joining(self._stream(partition), place(start))

    def _joined(self, messages: Sequence[Message], partition: int, joining: Joining) -> Iterator[Chunk]:
        """Yield what is enough for a chunk once `messages` are joined, which are of one partition."""
        end = place(messages[-1].offset() + 1)
        values = list(map(Message.value, messages))
        if None in values:  # deletions in a compacted topic: as if there were nothing
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
            values = list(map(Message.value, messages))
        if len(values) > 1 and sum(map(len, values)) > JOINED_BYTES:
            for some in (messages[: len(values) // 2], messages[len(values) // 2 :]):
                yield from self._joined(some, partition, joining)
        elif values:
            yield from self._added(values, messages, partition, joining)
        yield from joining.reached(end)

    def _added(self, values: Sequence[bytes], messages: Sequence[Message], partition: int, joining: Joining) -> Iterator[Chunk]:
        starts, times, keys = _places(messages), list(map(Message.timestamp, messages)), list(map(Message.key, messages))
        cut = None if self._by_key and keys.count(keys[0]) < len(keys) else self._documents.cut(values)
        if cut is not None:
            (data, sizes), who = cut
            yield from joining.add(self._origin(partition, who, keys[0]), RecordRun(data, sizes, starts, times))
            return
        parts, whose = self._documents.told(values)
        if not self._by_key and all(who.named for who in set(whose)):
            keys = [None] * len(keys)  # they do not matter
        about = list(zip(whose, keys, strict=True))
        origins = {each: self._origin(partition, *each) for each in dict.fromkeys(about)}
        if len(origins) == 1:
            yield from joining.add(origins[about[0]], RecordRun.of(parts, starts, times))
        else:
            yield from joining.add_each([origins[each] for each in about], parts, starts, times)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return, for every partition at `end`, how far it is read of what was there when `end` was decided."""
        return [
            Progress(self._stream(p), place(position.at), place(position.end), caught_up=position.at >= position.end)
            for p, position in _positions(end).items()
        ]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return nothing: a topic is read whole, or raises."""
        return {}

    def count(self) -> Mapping[int, int]:
        """Return how many offsets a first run would read now, by partition. Raises SourceMissing when there is no topic."""
        log = self._look()
        return {partition: max(0, log.ends.get(partition, at) - at) for partition, at in self._begin(log).items()}

    # --- offsets ---------------------------------------------------------------------------------------------------------

    @property
    def _cluster(self) -> Cluster:
        return Cluster.of(self.bootstrap_servers, self.options)

    def _begin(self, log: Log) -> Mapping[int, int]:
        if self.start == "latest":
            return log.ends
        if self.start == "earliest":
            return log.begins
        return self._cluster.since(self.topic, log, datetime.fromisoformat(self.start))

    def _look(self) -> Log:
        """Return the topic as it is now; where it ends, as it was at the first look when the input is bounded by that."""
        log = self._cluster.look(self.topic)
        if self.final and self._bounds is None:
            self._bounds = log.ends
        return log if self._bounds is None else replace(log, ends=self._bounds)

    # --- lines -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _documents(self) -> Documents:
        return _documents(fields_asked(self.labels))

    @cached_property
    def _by_key(self) -> bool:
        return any("{key" in label for label in self.labels.values())

    def _origin(self, partition: int, whose: Whose, key: bytes | str | None) -> RecordOrigin:
        """Return where the lines of a record are from; the same object for the same source and labels."""
        about = partition, whose.host, whose.file, whose.asked, None if whose.named and not self._by_key else key
        known = self._origins.get(about)
        if known is None:
            text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key or ""
            labels = filled(self.labels, partial(self._ask, text, whose))
            if whose.host:
                labels = {"host": whose.host, **labels}
            known = RecordOrigin(stream_name(self.topic, partition, text, whose), labels)
            if len(self._origins) < ORIGINS:
                self._origins[about] = known
        return known

    def _ask(self, key: str, whose: Whose, name: str, argument: str) -> str | None:
        if name == "field":
            return dict(zip(fields_asked(self.labels), whose.asked, strict=True))[argument]
        return {"topic": self.topic, "key": key, "host": whose.host, "file": whose.file}[name] or None

    def _stream(self, partition: int) -> str:
        return f"{self.topic}-{partition}"

    def _loss(self, lost: LostOffsets) -> DataLoss:
        return DataLoss(self._stream(lost.partition), lost.start, lost.end, lost.why)


def place(offset: int) -> int:
    """Return the position of the first byte of the record at `offset` in its partition."""
    return offset * RECORD_POSITIONS


def _places(messages: Sequence[Message]) -> Sequence[int]:
    """Return the positions that records of a partition begin at."""
    first, last = messages[0].offset(), messages[-1].offset()
    if last - first == len(messages) - 1:
        return range(place(first), place(last + 1), RECORD_POSITIONS)
    return [place(message.offset()) for message in messages]


def _offset(positions: PartitionPositions) -> Offset:
    return {str(partition): plain(position) for partition, position in sorted(positions.items())}


def _positions(offset: Offset) -> dict[int, PartitionPosition]:
    return {int(partition): made(position, PartitionPosition) for partition, position in offset.items()}
