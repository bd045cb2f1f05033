"""A Kafka topic as a Source.

A partition is one physical stream that many sources (files of hosts, or whatever keys name) are printed into, interleaved. It
is read in ranges of offsets that follow each other without a hole, so it is the partition whose slices are contiguous, and its
chunks carry its name as their `stream`: that is what lets the head of a stack trace in one batch find its tail in another,
whoever wrote between. A line's offset is `record offset * RECORD_POSITIONS + byte within the record`: it grows along every
source in the partition, is never given twice, and does not depend on how the topic was cut into batches. Offsets without a
record are spanned by empty chunks; a range that is lost is not, so that nothing is joined across it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from confluent_kafka import Message
from msgspec.structs import replace

from connectors.kafka.cluster import Cluster, Log
from connectors.kafka.joining import JOINED_BYTES, Joining, Origin, Taken
from connectors.kafka.labels import fields_asked, filled
from connectors.kafka.offsets import RECORD_POSITIONS, Lost, Position, Positions, Range, advanced, ranges, recreated
from connectors.kafka.reading import LIVE_PATIENCE_S, PATIENCE_S, reading
from connectors.kafka.records import Content, Run, content, fields_of, first, run_of, stream_name
from connectors.kafka.shapes import Shapes
from engine.codec import made, plain
from engine.errors import DataLoss, SourceAway, SourceError, SourceMissing
from engine.model.records import Labels, Progress
from engine.ports import Chunk, Offset

ORIGINS = 10_000  # that are remembered
FEW = 8  # records: fewer are not worth reading together
SINGLY = 10  # lists of records that are read one by one once most of one were: to try costs something too
_SHAPES = Shapes()  # of a process, for a source lives no longer than a batch there


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
    _origins: dict[object, Origin] = field(default_factory=dict, repr=False)
    _singly: dict[int, int] = field(default_factory=dict, repr=False)  # by partition: how many lists more are read singly

    def initial(self) -> Offset:
        """Return where a first run starts; a topic that is not there yet is read from its beginning once it is."""
        try:
            log = self._look()
        except SourceMissing:
            if self.final:
                raise
            return {}
        begins = self._begin(log)
        return _offset({p: Position(min(begins[p], end), end, log.id) for p, end in log.ends.items() if p in begins})

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
        slices: list[list[Range]] = [[] for _ in range(max(1, parallelism))]
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

        Records of a source that follow each other are one chunk.
        """
        lost = made(slice_["lost"], list[Lost])
        wanted = made(slice_["ranges"], list[Range])
        at = {each.partition: each.start for each in wanted}
        joining = Joining()
        patience_s = PATIENCE_S if self.final else LIVE_PATIENCE_S
        for item in reading(self.bootstrap_servers, self.options, self.topic, wanted, patience_s):
            if isinstance(item, Lost):
                lost.append(item)
                at[item.partition] = item.end
            else:
                partition = item[0].partition()
                at[partition] = yield from self._joined(item, partition, at[partition], joining)
        yield from _held(joining.rest())
        yield from (self._gap(each.partition, at[each.partition], each.end) for each in wanted if at[each.partition] < each.end)
        if lost:
            raise ExceptionGroup("lines are gone", [self._loss(each) for each in lost])

    def _joined(self, messages: Sequence[Message], partition: int, at: int, joining: Joining) -> Generator[Chunk, None, int]:
        """Yield what is complete once `messages` are joined, of a partition that is read up to `at`; return where it is.

        What cannot be read together is halved: a partition goes from one source to another now and then. One that does so all
        the time is read singly for a while.
        """
        together = not self._singly.get(partition, 0)
        todo, singly = [messages], 0
        while todo:
            some = todo.pop()
            run = self._run(some, at) if together and len(some) > FEW else None
            if run is not None:
                at = yield from self._joined_run(run, some, at, joining)
            elif together and len(some) > FEW:
                todo += (some[len(some) // 2 :], some[: len(some) // 2])
            else:
                singly += len(some)
                at = yield from self._joined_singly(some, partition, at, joining)
        rest = self._singly.get(partition, 0) - 1
        self._singly[partition] = SINGLY if together and len(messages) > FEW and singly * 2 > len(messages) else max(0, rest)
        return at

    def _joined_run(self, run: Run, messages: Sequence[Message], at: int, joining: Joining) -> Generator[Chunk, None, int]:
        first = messages[0]
        end = at + len(messages)
        starts = range(place(at), place(end), RECORD_POSITIONS)
        taken = Taken(run.data, run.sizes, starts, list(map(Message.timestamp, messages)))
        yield from _held(joining.add(self._origin(first.partition(), first.key(), run), taken, place(end)))
        return end

    def _joined_singly(
        self, messages: Sequence[Message], partition: int, at: int, joining: Joining
    ) -> Generator[Chunk, None, int]:
        for message in messages:
            offset, value = message.offset(), message.value()
            if value is None:  # a deletion in a compacted topic: as if there were nothing
                continue
            if at < offset:
                yield from _held(joining.rest())
                yield self._gap(partition, at, offset)
            said = content(value)
            origin = self._origin(partition, message.key(), said, value)
            at = offset + 1
            taken = Taken(said.data, [len(said.data)], [place(offset)], [message.timestamp()])
            yield from _held(joining.add(origin, taken, place(at)))
        return at

    def _run(self, messages: Sequence[Message], at: int) -> Run | None:
        """Return what `messages` hold if that is surely of one source without a gap."""
        values = list(map(Message.value, messages))
        whole = messages[0].offset() == at and messages[-1].offset() == at + len(messages) - 1 and None not in values
        if not whole or sum(map(len, values)) > JOINED_BYTES:
            return None
        run = run_of(values, _SHAPES)
        if run is None or (self._fields and not self._tells_fields(run.examples)):
            return None
        return run if not self._keyed(run) or len(set(map(Message.key, messages))) == 1 else None

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

    def _gap(self, partition: int, start: int, end: int) -> Chunk:
        stream = self._stream(partition)
        return Chunk(stream, place(start), b"", stream=stream, end=place(end))

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        """The fields that labels ask for."""
        return fields_asked(self.labels)

    @cached_property
    def _asks_for_keys(self) -> bool:
        return any("{key" in label for label in self.labels.values())

    def _keyed(self, said: Content | Run) -> bool:
        """Tell whether the key of a record has to do with where its lines are from."""
        return self._asks_for_keys or not (said.host or said.file)

    def _tells_fields(self, examples: tuple[bytes, ...]) -> bool:
        """Tell whether all documents like these have the same fields, as far as labels ask for them."""
        said = [[first(fields_of(example), (name,)) for name in self._fields] for example in examples]
        return bool(said) and said.count(said[0]) == len(said)

    def _origin(self, partition: int, key: bytes | str | None, said: Content | Run, value: bytes = b"") -> Origin:
        """Return where a record's lines are from; the same object for the same source, where its fields do not matter or those
        of many are told by an example."""
        example = said.examples[0] if self._fields and isinstance(said, Run) else b""
        about = partition, key if self._keyed(said) else None, said.host, said.file, example
        known = self._origins.get(about)
        if known is None or (self._fields and not example):
            known = self._made_origin(partition, _text(key), said, value or example)
            if len(self._origins) < ORIGINS:
                self._origins[about] = known
        return known

    def _made_origin(self, partition: int, key: str, said: Content | Run, value: bytes) -> Origin:
        labels = filled(self.labels, partial(self._ask, key, said, value))
        if said.host:
            labels = {"host": said.host, **labels}
        return Origin(stream_name(self.topic, partition, key, said), self._stream(partition), labels)

    def _ask(self, key: str, said: Content | Run, value: bytes, name: str, argument: str) -> str | None:
        if name == "field":
            return first(fields_of(value), (argument,))
        return {"topic": self.topic, "key": key, "host": said.host, "file": said.file}[name] or None

    def _stream(self, partition: int) -> str:
        return f"{self.topic}-{partition}"

    def _loss(self, lost: Lost) -> DataLoss:
        return DataLoss(self._stream(lost.partition), lost.start, lost.end, lost.why)


def place(offset: int) -> int:
    """Return the position of the first byte of the record at `offset` in its partition."""
    return offset * RECORD_POSITIONS


def _held(chunk: Chunk | None) -> Sequence[Chunk]:
    return () if chunk is None else (chunk,)


def _text(key: bytes | str | None) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else key or ""


def _offset(positions: Positions) -> Offset:
    return {str(partition): plain(position) for partition, position in sorted(positions.items())}


def _positions(offset: Offset) -> dict[int, Position]:
    return {int(partition): made(position, Position) for partition, position in offset.items()}
