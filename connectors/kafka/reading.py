"""Reading ranges of offsets with librdkafka: exactly the committed records of each range, in order, none twice, none skipped.

A range ends when a record at or past its last offset arrives, or the broker says that the log ends there. Offsets may be
missing anywhere (compaction, aborted transactions, control records), so counting records tells nothing.
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

BATCH = 200  # records of one consume(): larger lists cost more than they save (they leave the cache)
STASHED = 5_000  # records kept of a partition that were fetched past a range's end
WAIT_S = 0.5
ASK_AGAIN_S = 5.0
PATIENCE_S = 60.0
LIVE_PATIENCE_S = 20.0  # a run without end plans its batch anew; while it waits here its other sources wait with it
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
    """Yield the records of `ranges`, in lists of one partition each, and what is lost of them where it is found.

    The consumer stays open between calls, where it stands, with what it has fetched ahead: one for each configuration and
    process. After any error, or when the caller does not read to the end, it is closed and forgotten.
    Raises SourceError; SourceAway when nothing came for `patience_s`.
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
    """A consumer of one topic. Where it stands in each partition is known at every moment between two reads."""

    def __init__(
        self, servers: str, options: Mapping[str, str], topic: str, stashed: int = STASHED, patience_s: float = PATIENCE_S
    ) -> None:
        self._servers, self._topic = servers, topic
        self._stashed, self._patience_s = stashed, patience_s
        self._consumer: Consumer = client(Consumer, {**connection(servers, options), **_SETTINGS, **_group(options)})
        self._next: dict[int, int] = {}  # the next offset to hand out; its keys are the partitions assigned
        self._ended: dict[int, int] = {}  # where the broker last said that the log ends
        self._stash: dict[int, list[Message]] = {}  # fetched already, past the end of the last range
        self._todo: dict[int, int] = {}  # the ends of the ranges being read

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[Sequence[Message] | LostOffsets]:
        """Yield the records of `ranges`, in lists of one partition each, and what is lost of them. Raises SourceError."""
        self._todo = {each.partition: each.end for each in ranges}
        for each in ranges:
            if self._next.get(each.partition) != each.start:
                self._place(each.partition, each.start)
        for each in ranges:
            yield from self._unstashed(each.partition)
        heard = asked = time.monotonic()
        while self._todo:
            messages = self._consumer.consume(min(BATCH, self._left()), WAIT_S)
            now = time.monotonic()
            if messages:
                heard = asked = now
            elif now - heard > self._patience_s:
                raise self._silence()
            elif now - asked > ASK_AGAIN_S:
                self._ask_again()
                asked = now
            for partition, failed, run in runs(messages):
                yield from (self._told if failed else self._taken)(partition, run)

    def _left(self) -> int:
        """Return how many records may be left of what is being read: consume() waits for as many as it is asked for."""
        return sum(end - self._next[partition] for partition, end in self._todo.items())

    def _place(self, partition: int, offset: int) -> None:
        """Let the consumer stand at `offset`; assigning anew, unlike seeking, leaves nothing of the old place in its queue."""
        self._forget(partition)
        self._consumer.incremental_assign([TopicPartition(self._topic, partition, offset)])
        self._next[partition] = offset

    def _forget(self, partition: int) -> None:
        if self._next.pop(partition, None) is not None:
            self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        self._ended.pop(partition, None)
        self._stash.pop(partition, None)

    def _unstashed(self, partition: int) -> Iterator[Sequence[Message]]:
        """Yield what an earlier range left over; the range may be complete with it, or by an end that was told back then."""
        end, fetched = self._todo[partition], self._stash.pop(partition, [])
        rest = [message for message in fetched if message.offset() >= end]
        if used := fetched[: len(fetched) - len(rest)]:
            self._next[partition] = used[-1].offset() + 1
            yield used
        if rest:
            self._stash[partition] = rest
        if rest or max(self._next[partition], self._ended.get(partition, 0)) >= end:
            self._done(partition)

    def _done(self, partition: int) -> None:
        self._next[partition] = self._todo.pop(partition)

    def _taken(self, partition: int, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
        if partition not in self._todo:
            self._keep(partition, messages)
            return
        end, last = self._todo[partition], messages[-1].offset()
        wanted = messages if last < end else [message for message in messages if message.offset() < end]
        if wanted:
            self._next[partition] = wanted[-1].offset() + 1
            yield wanted
        self._keep(partition, messages[len(wanted) :])
        if last + 1 >= end:
            self._done(partition)

    def _keep(self, partition: int, messages: Sequence[Message]) -> None:
        """Keep records for the next range; too many are given back, to be fetched again when they are wanted."""
        if not messages or partition not in self._next:
            return
        kept = self._stash.setdefault(partition, [])
        kept.extend(messages)
        if len(kept) > self._stashed and partition not in self._todo:
            self._forget(partition)

    def _told(self, partition: int, messages: Sequence[Message]) -> Iterator[LostOffsets]:
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
            yield from self._skipped(partition)
        elif not (error.retriable() or code in AWAY | PASSING | MISSING):  # `_silence` asks when nothing else comes
            raise explained(error, self._servers, self._topic)

    def _skipped(self, partition: int) -> Iterator[LostOffsets]:
        """Go on at the earliest record there is; what was before it is lost."""
        if partition not in self._todo:
            self._forget(partition)
            return
        start, end = self._next[partition], self._todo[partition]
        low, high = self._bounds(partition)
        if start < low < end:
            self._place(partition, low)
            yield LostOffsets(partition, start, low, f"the log begins at offset {low} now: retention or a deletion of records")
            return
        if low <= start < high:  # the log has grown back to it in between
            self._place(partition, start)
            return
        why = f"the log now holds offsets {low} to {high} only"
        self._todo.pop(partition)
        self._forget(partition)
        yield LostOffsets(partition, start, end, why)

    def _bounds(self, partition: int) -> tuple[int, int]:
        try:
            low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=ANSWER_S)
        except KafkaException as error:
            raise explained(error.args[0], self._servers, self._topic) from None
        return low, high

    def _ask_again(self) -> None:
        """Begin anew where we stand: that brings records, the end of the log, or an error; waiting on might bring nothing."""
        for partition in self._todo:
            self._place(partition, self._next[partition])

    def _silence(self) -> SourceError:
        """Return why nothing comes. What is gone for good is for the next look at the cluster to tell: a broker that has only
        just come up may not know its topics yet."""
        waiting = ", ".join(f"{self._topic}-{p} at {self._next[p]} of {end}" for p, end in sorted(self._todo.items()))
        try:
            found = self._consumer.list_topics(self._topic, ANSWER_S).topics[self._topic]
        except KafkaException as error:
            return explained(error.args[0], self._servers, self._topic)
        refusal = explained(found.error, self._servers, self._topic) if found.error is not None else None
        if refusal is not None and not isinstance(refusal, SourceMissing):
            return refusal
        why = refusal or f"nothing came from {self._servers} for {self._patience_s:g} s: {waiting}"
        return SourceAway(f"the topic {self._topic} on {self._servers}", str(why))


def runs(messages: Sequence[Message]) -> Iterator[tuple[int, bool, Sequence[Message]]]:
    """Yield messages that follow each other and are of one partition, errors apart: whose, whether errors, and they."""
    partitions, errors = list(map(Message.partition, messages)), list(map(Message.error, messages))
    if len(set(partitions)) == 1 and not any(errors):  # nearly always: grouping them costs as much as fetching them
        yield partitions[0], False, messages
        return
    kinds = zip(partitions, (error is not None for error in errors), strict=True)
    at = 0
    for kind, run in groupby(kinds):
        begin, at = at, at + sum(1 for _ in run)
        yield *kind, messages[begin:at]


def _group(options: Mapping[str, str]) -> dict[str, str]:
    return {"group.id": options["group.id"]} if "group.id" in options else {}
