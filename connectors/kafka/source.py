"""A Kafka topic as a Source.

A partition is one physical stream in which the lines of many sources (files of hosts, or the keys of records) are interleaved.
It is read in consecutive ranges of offsets. So the slices of a partition are contiguous, and its chunks have its name as their
`stream`: that joins the beginning of a stack trace in one batch with its end in another, whatever lies between.

A line's offset is `record offset * RECORD_POSITIONS + byte within the record`. It grows along every source in the partition, is
unique, and does not depend on how the topic was divided into batches. Empty chunks span offsets without a record. No chunk
spans a range that is lost, so that nothing is joined across it.
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
from engine.labelling import fields_asked, filled
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

ORIGINS = 10_000  # most origins in the cache

_documents = lru_cache(16)(Documents)  # one for a process, since a source lives only for one batch in a worker


@dataclass
class KafkaSource:
    """Reads the committed records of `topic` as lines.

    A record is one or more lines, or a shipper's JSON document around one (see documents.py). Its lines belong to the source
    `<topic>/<host>:<file>` if it names a host or file, else to `<topic>/<key>` if it has a key, else to `<topic>-<partition>`.
    The record's time is the ingest time of its lines. A host that the record names is the label `host`.

    Args:
        bootstrap_servers: `host:port,...`.
        labels: templates (see labels.py).
        options: passed to librdkafka (see options.py).
        start: of a first run: `earliest`, `latest` or an ISO time. A topic or partition that appears later is read from its
            beginning.
        final: the input ends where the topic ends at the first look.

    Every method raises SourceError (SourceMissing, SourceDenied, SourceAway), with a sentence for the user, when the cluster
    refuses.
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
        """Return the offset at which a first run starts. A topic that does not exist yet will be read from its beginning."""
        try:
            log = self._look()
        except SourceMissing:
            if self.final:
                raise
            return {}
        begins = self._begin(log)
        return _offset({p: PartitionPosition(min(begins[p], end), end, log.id) for p, end in log.ends.items() if p in begins})

    def latest(self, start: Offset, max_lines: int | None = None) -> Offset:
        """Return the offset up to which can be read now, at most `max_lines` records past `start`.

        A missing topic raises SourceAway, if the input has no end.
        """
        try:
            log = self._look()
        except SourceMissing as missing:
            if self.final:
                raise
            raise SourceAway(f"the topic {self.topic} on {self.bootstrap_servers}", str(missing)) from None
        return _offset(advanced(_positions(start), log.begins, log.ends, max_lines, log.id))

    def partitions(self, start: Offset, end: Offset, parallelism: int = 1) -> Sequence[Mapping[str, Any]]:
        """Return up to `parallelism` slices of ranges. With one, the same consumer always continues at its position."""
        before, after = _positions(start), _positions(end)
        slices: list[list[OffsetRange]] = [[] for _ in range(max(1, parallelism))]
        for range_ in sorted(ranges(before, after), key=lambda r: r.start - r.end):
            min(slices, key=lambda slice_: sum(r.end - r.start for r in slice_)).append(range_)
        lost = recreated(before, after)
        return [
            {"ranges": plain(slice_), "lost": plain(lost if at == 0 else [])}
            for at, slice_ in enumerate(slices)
            if slice_ or (lost and at == 0)
        ]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises an ExceptionGroup of DataLoss for lines that are gone, after all that remain were
        yielded.

        Records of a source that are read at about the same time are one chunk.
        """
        lost = made(slice_["lost"], list[LostOffsets])
        planned = made(slice_["ranges"], list[OffsetRange])
        joinings = {range_.partition: self._joining(range_.partition, range_.start) for range_ in planned}
        patience_s = PATIENCE_S if self.final else LIVE_PATIENCE_S
        for item in reading(self.bootstrap_servers, self.options, self.topic, planned, patience_s):
            if isinstance(item, LostOffsets):
                lost.append(item)
                yield from joinings[item.partition].rest()
                joinings[item.partition] = self._joining(item.partition, item.end)
            else:
                partition = item[0].partition()
                yield from self._joined(item, partition, joinings[partition])
        for range_ in planned:
            joining = joinings[range_.partition]
            yield from joining.reached(place(range_.end))
            yield from joining.rest()
        if lost:
            raise ExceptionGroup("lines are gone", [self._loss(offsets) for offsets in lost])

    def _joining(self, partition: int, start: int) -> Joining:
        return Joining(self._stream(partition), place(start))

    def _joined(self, messages: Sequence[Message], partition: int, joining: Joining) -> Iterator[Chunk]:
        """Add `messages`, all of one partition, to `joining`; yield the chunks that are full then."""
        end = place(messages[-1].offset() + 1)
        values = list(map(Message.value, messages))
        if None in values:  # tombstones of a compacted topic are skipped
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
            values = list(map(Message.value, messages))
        if len(values) > 1 and sum(map(len, values)) > JOINED_BYTES:
            for half in (messages[: len(values) // 2], messages[len(values) // 2 :]):
                yield from self._joined(half, partition, joining)
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
            keys = [None] * len(keys)  # neither source nor labels depend on them
        speakers = list(zip(whose, keys, strict=True))
        origins = {speaker: self._origin(partition, *speaker) for speaker in dict.fromkeys(speakers)}
        if len(origins) == 1:
            yield from joining.add(origins[speakers[0]], RecordRun.of(parts, starts, times))
        else:
            yield from joining.add_each([origins[speaker] for speaker in speakers], parts, starts, times)

    def progress(self, end: Offset) -> Sequence[Progress]:
        """Return, for every partition at `end`, how far it is read and where it ended when `end` was decided."""
        return [
            Progress(self._stream(p), place(position.at), place(position.end), caught_up=position.at >= position.end)
            for p, position in _positions(end).items()
        ]

    def unreadable(self) -> Mapping[str, SourceError]:
        """Return an empty mapping: a topic is readable as a whole, or `latest` raises."""
        return {}

    def count(self) -> Mapping[int, int]:
        """Return, by partition, the number of offsets that a first run would read now. Raises SourceMissing when the topic does
        not exist."""
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
        """Return the topic as it is now; when the input is bounded, with the ends of the first look."""
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
        """Return the origin of the lines of a record: the same object for the same source and labels, as long as the cache has
        room."""
        cache_key = partition, whose.host, whose.file, whose.asked, None if whose.named and not self._by_key else key
        origin = self._origins.get(cache_key)
        if origin is None:
            text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key or ""
            labels = filled(self.labels, partial(self._ask, text, whose))
            if whose.host:
                labels = {"host": whose.host, **labels}
            origin = RecordOrigin(stream_name(self.topic, partition, text, whose), labels)
            if len(self._origins) < ORIGINS:
                self._origins[cache_key] = origin
        return origin

    def _ask(self, key: str, whose: Whose, name: str, argument: str) -> str | None:
        if name == "field":
            return dict(zip(fields_asked(self.labels), whose.asked, strict=True))[argument]
        return {"topic": self.topic, "key": key, "host": whose.host, "file": whose.file}[name] or None

    def _stream(self, partition: int) -> str:
        return f"{self.topic}-{partition}"

    def _loss(self, lost: LostOffsets) -> DataLoss:
        return DataLoss(self._stream(lost.partition), lost.start, lost.end, lost.why)


def place(offset: int) -> int:
    """Return the position in its partition of the first byte of the record at `offset`."""
    return offset * RECORD_POSITIONS


def _places(messages: Sequence[Message]) -> Sequence[int]:
    """Return the positions at which the records of a partition begin."""
    first, last = messages[0].offset(), messages[-1].offset()
    if last - first == len(messages) - 1:
        return range(place(first), place(last + 1), RECORD_POSITIONS)
    return [place(message.offset()) for message in messages]


def _offset(positions: PartitionPositions) -> Offset:
    return {str(partition): plain(position) for partition, position in sorted(positions.items())}


def _positions(offset: Offset) -> dict[int, PartitionPosition]:
    return {int(partition): made(position, PartitionPosition) for partition, position in offset.items()}
