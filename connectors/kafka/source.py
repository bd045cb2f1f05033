"""A Kafka topic as a Source.

A partition is one physical stream in which the lines of many sources (files of hosts, or the keys of records) are interleaved.
It is read in consecutive ranges of offsets. So the slices of a partition are contiguous, and its chunks have its name as their
`stream`: that joins the beginning of a stack trace in one batch with its end in another, whatever lies between.

A line's offset is `record offset * RECORD_POSITIONS + byte within the record`. It grows along every source in the partition, is
unique, and does not depend on how the topic was divided into batches. Empty chunks span offsets without a record. No chunk
spans a range that is lost, so that nothing is joined across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache, partial
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message
from msgspec.structs import replace

from connectors.kafka.cluster import Cluster, Log
from connectors.kafka.documents import RecordAuthor, RecordReader, stream_name
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
from engine.joining import JOINED_BYTES, LineSource, RecordJoining
from engine.labelling import fields_asked, filled
from engine.model.records import Labels, Progress
from engine.ports import NO_INGEST_TIME, Chunk, Offset, ingest_us

SOURCES = 10_000  # most sources of lines in the cache

_record_reader = lru_cache(16)(RecordReader)  # one for a process, since a source lives only for one batch in a worker


@dataclass
class KafkaSource:
    """Reads the committed records of `topic` as lines.

    A record is one or more lines, or a JSON document, which is one line (see documents.py). Its lines belong to the source
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
    _sources: dict[object, LineSource] = field(default_factory=dict, repr=False)

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
        """Return up to `parallelism` slices of ranges, without those behind the last that has a range.

        A partition belongs to the slice with the same number in every batch, so that its consumer continues at its position
        where the slice is read by the same process.
        """
        before, after = _positions(start), _positions(end)
        slices: list[list[OffsetRange]] = [[] for _ in range(max(1, parallelism))]
        for range_ in ranges(before, after):
            slices[range_.partition % len(slices)].append(range_)
        lost = recreated(before, after)
        used = max((at + 1 for at, slice_ in enumerate(slices) if slice_ or (lost and at == 0)), default=0)
        return [{"ranges": plain(slice_), "lost": plain(lost if at == 0 else [])} for at, slice_ in enumerate(slices[:used])]

    def chunks(self, slice_: Mapping[str, Any]) -> Iterator[Chunk]:
        """Yield the lines of a slice. Raises an ExceptionGroup of DataLoss for lines that are gone, after all that remain were
        yielded.

        Records of a source that are read at about the same time are one chunk.
        """
        lost = made(slice_["lost"], list[LostOffsets])
        planned = made(slice_["ranges"], list[OffsetRange])
        joinings = {range_.partition: self._joining(range_.partition, range_.start) for range_ in planned}
        patience_s = PATIENCE_S if self.final else LIVE_PATIENCE_S
        items = reading(self.bootstrap_servers, self.options, self.topic, planned, patience_s) if planned else ()
        for item in items:
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

    def _joining(self, partition: int, start: int) -> RecordJoining:
        return RecordJoining(self._stream(partition), place(start))

    def _joined(self, messages: Sequence[Message], partition: int, joining: RecordJoining) -> Iterator[Chunk]:
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

    def _added(
        self, values: Sequence[bytes], messages: Sequence[Message], partition: int, joining: RecordJoining
    ) -> Iterator[Chunk]:
        positions, times_us = _places(messages), _times_us(map(Message.timestamp, messages))
        lines, authors = self._reader.read(values)
        unique = dict.fromkeys(authors)
        if self._by_key or not all(author.is_named for author in unique):
            writers = list(zip(authors, map(Message.key, messages), strict=True))
            by_writer = {writer: self._line_source(partition, *writer) for writer in dict.fromkeys(writers)}
            sources = [by_writer[writer] for writer in writers]
        else:  # neither source nor labels depend on the key
            by_author = {author: self._line_source(partition, author, None) for author in unique}
            sources = [by_author[author] for author in authors]
        if sources.count(sources[0]) == len(sources):
            yield from joining.add(sources[0], lines, positions, times_us)
        else:
            yield from joining.add_each(sources, lines, positions, times_us)

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

    def topics(self) -> frozenset[str]:
        """Return the names of the topics of the cluster that may be seen; empty when they cannot be listed."""
        return self._cluster.topics()

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
    def _reader(self) -> RecordReader:
        return _record_reader(fields_asked(self.labels))

    @cached_property
    def _by_key(self) -> bool:
        return any("{key" in label for label in self.labels.values())

    def _line_source(self, partition: int, author: RecordAuthor, key: bytes | str | None) -> LineSource:
        """Return the source of the lines of a record: the same object for the same source and labels, as long as the cache has
        room."""
        cache_key = partition, author.host, author.file, author.fields, None if author.is_named and not self._by_key else key
        source = self._sources.get(cache_key)
        if source is None:
            text = key.decode("utf-8", "replace") if isinstance(key, bytes) else key or ""
            labels = filled(self.labels, partial(self._ask, text, author))
            if author.host:
                labels = {"host": author.host, **labels}
            source = LineSource(stream_name(self.topic, partition, text, author), labels)
            if len(self._sources) < SOURCES:
                self._sources[cache_key] = source
        return source

    def _ask(self, key: str, author: RecordAuthor, name: str, argument: str) -> str | None:
        if name == "field":
            return dict(zip(fields_asked(self.labels), author.fields, strict=True))[argument]
        return {"topic": self.topic, "key": key, "host": author.host, "file": author.file}[name] or None

    def _stream(self, partition: int) -> str:
        return f"{self.topic}-{partition}"

    def _loss(self, lost: LostOffsets) -> DataLoss:
        return DataLoss(self._stream(lost.partition), lost.start, lost.end, lost.why)


def place(offset: int) -> int:
    """Return the position in its partition of the first byte of the record at `offset`."""
    return offset * RECORD_POSITIONS


def _times_us(timestamps: Iterable[tuple[int, int]]) -> Sequence[int]:
    """Return the times of records as RecordPositions has them."""
    return [NO_INGEST_TIME if kind == TIMESTAMP_NOT_AVAILABLE else ingest_us(at_ms * 1000) for kind, at_ms in timestamps]


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
