"""Reads ranges of offsets with librdkafka: exactly the committed records of each range, in order, none twice, none skipped.

A range is complete when a record at or past its last offset arrives, or the broker reports that the log ends there. Offsets may
be missing anywhere (compaction, aborted transactions, control records), so the number of records does not show it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from connectors.kafka.cluster import client, connection
from connectors.kafka.offsets import LostOffsets, OffsetRange
from connectors.kafka.refusals import AWAY, MISSING, PASSING, explained
from engine.errors import SourceAway, SourceError, SourceMissing

BATCH = 200  # records of one consume(): larger lists cost more than they save (they do not fit into the processor's cache)
STASHED = 5_000  # most records of a partition that are stored when they were fetched past the end of a range
WAIT_S = 0.5
ASK_AGAIN_S = 5.0
PATIENCE_S = 60.0
LIVE_PATIENCE_S = 20.0  # for a run without end, which plans the batch again; while it waits here, its other sources wait too
ANSWER_S = 10.0

_SETTINGS = {
    "group.id": "tocsin",  # required by librdkafka; nothing is committed to it
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "queued.max.messages.kbytes": 32768,
    "fetch.wait.max.ms": 100,
}
_OUT_OF_RANGE = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)
_READERS: dict[tuple[int, str], RangeReader] = {}


def reading(
    servers: str, options: Mapping[str, str], topic: str, ranges: Sequence[OffsetRange], patience_s: float = PATIENCE_S
) -> Iterator[Sequence[Message] | LostOffsets]:
    """Yield the records of `ranges`, in lists of one partition each, and every loss when it is noticed.

    The consumer stays open between calls, at its position and with the records that it has fetched ahead; there is one for each
    configuration and process. After any error, or when the caller does not read to the end, it is closed and removed.
    Raises SourceError; SourceAway when nothing arrived for `patience_s` seconds.
    """
    key = os.getpid(), json.dumps([servers, dict(options), topic], sort_keys=True)
    if key not in _READERS:
        _READERS[key] = RangeReader(servers, options, topic, patience_s=patience_s)
    reader = _READERS[key]
    try:
        yield from reader.read(ranges)
    except BaseException:
        _READERS.pop(key, None)
        reader.close()
        raise


class RangeReader:
    """A consumer of one topic. Between two reads its position in each partition is known."""

    def __init__(
        self, servers: str, options: Mapping[str, str], topic: str, stashed: int = STASHED, patience_s: float = PATIENCE_S
    ) -> None:
        self._servers, self._topic = servers, topic
        self._stashed, self._patience_s = stashed, patience_s
        self._consumer: Consumer = client(Consumer, {**connection(servers, options), **_SETTINGS, **_group(options)})
        self._next: dict[int, int] = {}  # the next offset to yield; its keys are the assigned partitions
        self._ended: dict[int, int] = {}  # the end of the log, as the broker last reported it
        self._stash: dict[int, list[Message]] = {}  # fetched records past the end of the last range
        self._todo: dict[int, int] = {}  # the ends of the ranges that are being read

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[Sequence[Message] | LostOffsets]:
        """Yield the records of `ranges`, in lists of one partition each, and the losses in them. Raises SourceError."""
        self._todo = {range_.partition: range_.end for range_ in ranges}
        for range_ in ranges:
            if self._next.get(range_.partition) != range_.start:
                self._assign(range_.partition, range_.start)
        for range_ in ranges:
            yield from self._unstashed(range_.partition)
        received = assigned = time.monotonic()
        while self._todo:
            messages = self._consumer.consume(min(BATCH, self._left()), WAIT_S)
            now = time.monotonic()
            if messages:
                received = assigned = now
            elif now - received > self._patience_s:
                raise self._silence()
            elif now - assigned > ASK_AGAIN_S:
                self._reassign()
                assigned = now
            for partition, failed, run in runs(messages):
                yield from (self._errors if failed else self._records)(partition, run)

    def _left(self) -> int:
        """Return the most records that the ranges may still have: consume() waits for as many as are asked for."""
        return sum(end - self._next[partition] for partition, end in self._todo.items())

    def _assign(self, partition: int, offset: int) -> None:
        """Move the consumer to `offset` by a new assignment: unlike a seek, that leaves no old records in its queue."""
        self._unassign(partition)
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])
        self._next[partition] = offset

    def _unassign(self, partition: int) -> None:
        if self._next.pop(partition, None) is not None:
            self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        self._ended.pop(partition, None)
        self._stash.pop(partition, None)

    def _unstashed(self, partition: int) -> Iterator[Sequence[Message]]:
        """Yield the stashed records of a partition. The range may be complete with them, or by an end that was reported
        earlier."""
        end, fetched = self._todo[partition], self._stash.pop(partition, [])
        rest = [message for message in fetched if message.offset() >= end]
        if within := fetched[: len(fetched) - len(rest)]:
            self._next[partition] = within[-1].offset() + 1
            yield within
        if rest:
            self._stash[partition] = rest
        if rest or max(self._next[partition], self._ended.get(partition, 0)) >= end:
            self._done(partition)

    def _done(self, partition: int) -> None:
        self._next[partition] = self._todo.pop(partition)

    def _records(self, partition: int, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        if partition not in self._todo:
            self._stash_records(partition, messages)
            return
        end, last = self._todo[partition], messages[-1].offset()
        within = messages if last < end else [message for message in messages if message.offset() < end]
        if within:
            self._next[partition] = within[-1].offset() + 1
            yield within
        self._stash_records(partition, messages[len(within) :])
        if last + 1 >= end:
            self._done(partition)

    def _stash_records(self, partition: int, messages: Sequence[Message]) -> None:
        """Store records for the next range. If there are too many, drop them and the assignment: they are fetched again."""
        if not messages or partition not in self._next:
            return
        stash = self._stash.setdefault(partition, [])
        stash.extend(messages)
        if len(stash) > self._stashed and partition not in self._todo:
            self._unassign(partition)

    def _errors(self, partition: int, messages: Sequence[Message]) -> Iterator[LostOffsets]:
        for message in messages:
            if (error := message.error()) is not None:
                yield from self._refused(error, partition, message.offset())

    def _refused(self, error: KafkaError, partition: int, offset: int) -> Iterator[LostOffsets]:
        code = error.code()
        if code == KafkaError._PARTITION_EOF:  # `offset` is the next one, control records and gaps included
            if partition in self._next:
                self._ended[partition] = offset
            if offset >= self._todo.get(partition, offset + 1):
                self._done(partition)
        elif code in _OUT_OF_RANGE:
            yield from self._skip_lost(partition)
        elif not (error.retriable() or code in AWAY | PASSING | MISSING):  # of these `_silence` finds the reason, if they last
            raise explained(error, self._servers, self._topic)

    def _skip_lost(self, partition: int) -> Iterator[LostOffsets]:
        """Continue at the earliest record of the log; yield the offsets before it as lost."""
        if partition not in self._todo:
            self._unassign(partition)
            return
        start, end = self._next[partition], self._todo[partition]
        low, high = self._bounds(partition)
        if start < low < end:
            self._assign(partition, low)
            yield LostOffsets(partition, start, low, f"the log begins at offset {low} now: retention or a deletion of records")
            return
        if low <= start < high:  # the log has grown beyond the start again
            self._assign(partition, start)
            return
        why = f"the log now holds offsets {low} to {high} only"
        self._todo.pop(partition)
        self._unassign(partition)
        yield LostOffsets(partition, start, end, why)

    def _bounds(self, partition: int) -> tuple[int, int]:
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=ANSWER_S)
        except KafkaException as error:
            raise explained(error.args[0], self._servers, self._topic) from None
        return low, high

    def _reassign(self) -> None:
        """Assign all partitions again at their positions. That brings records, the end of the log, or an error, where waiting
        longer might bring nothing."""
        for partition in self._todo:
            self._assign(partition, self._next[partition])

    def _silence(self) -> SourceError:
        """Return the reason why nothing arrives. A missing topic is only SourceAway here: a broker that has just started may
        not have its topics yet, and the next look at the cluster decides."""
        waiting = ", ".join(f"{self._topic}-{p} at {self._next[p]} of {end}" for p, end in sorted(self._todo.items()))
        try:
            metadata = self._consumer.list_topics(self._topic, ANSWER_S).topics[self._topic]
        except KafkaException as error:
            return explained(error.args[0], self._servers, self._topic)
        refusal = explained(metadata.error, self._servers, self._topic) if metadata.error is not None else None
        if refusal is not None and not isinstance(refusal, SourceMissing):
            return refusal
        why = refusal or f"nothing came from {self._servers} for {self._patience_s:g} s: {waiting}"
        return SourceAway(f"the topic {self._topic} on {self._servers}", str(why))


def runs(messages: Sequence[Message]) -> Iterator[tuple[int, bool, Sequence[Message]]]:
    """Yield runs of consecutive messages that are of one partition and either all errors or all records, as (partition, whether
    they are errors, messages)."""
    partitions, errors = list(map(Message.partition, messages)), list(map(Message.error, messages))
    if len(set(partitions)) == 1 and not any(errors):  # the usual case: grouping messages costs as much as fetching them
        yield partitions[0], False, messages
        return
    kinds = zip(partitions, (error is not None for error in errors), strict=True)
    at = 0
    for kind, run in groupby(kinds):
        begin, at = at, at + sum(1 for _ in run)
        yield *kind, messages[begin:at]


def _group(options: Mapping[str, str]) -> dict[str, str]:
    return {"group.id": options["group.id"]} if "group.id" in options else {}
