"""Topics on the test broker, written as shippers and producers write: short to say in a test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from connectors.kafka.refusals import AWAY, PASSING

MAX_BYTES = 8 * 1024 * 1024
WITHIN_S = 60


class Topics:
    """Makes topics of names of their own and writes to them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient({"bootstrap.servers": address})
        settings = {"bootstrap.servers": address, "message.max.bytes": MAX_BYTES}
        self._producer = Producer({**settings, "enable.idempotence": True})  # no line twice when a leader changes

    def close(self) -> None:
        self._producer.flush(WITHIN_S)

    def make(self, partitions: int = 1, name: str = "", replicas: int = 1, **config: str) -> str:
        """Make a topic and return its name."""
        name = name or f"logs-{uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.until(lambda: self._made(NewTopic(name, partitions, replicas, config=settings)))
        return name

    def _made(self, topic: NewTopic) -> bool:
        """Make a topic; return False where that has to be tried again: a cluster that has just come up lets connections go."""
        try:
            _done(self._admin.create_topics([topic]))
        except KafkaException as error:
            if error.args[0].code() in PASSING | AWAY:
                return False
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # by the attempt before
                raise
        return True

    def drop(self, topic: str) -> None:
        _done(self._admin.delete_topics([topic]))
        self.until(lambda: topic not in self._admin.list_topics(timeout=WITHIN_S).topics)

    def grow(self, topic: str, partitions: int) -> None:
        _done(self._admin.create_partitions([NewPartitions(topic, partitions)]))

    def keep(self, topic: str, **config: str) -> None:
        """Change settings of a topic."""
        changes = [
            ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        _done(self._admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)]))

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset, as retention does."""
        _done(self._admin.delete_records([TopicPartition(topic, partition, before)]))

    def leaders(self, topic: str) -> set[int]:
        """Return the brokers that lead a partition of a topic."""
        found = self._admin.list_topics(topic, WITHIN_S).topics[topic].partitions.values()
        return {partition.leader for partition in found}

    def in_sync(self, topic: str, replicas: int) -> bool:
        """Tell whether every partition of a topic has so many replicas that are up to date."""
        found = self._admin.list_topics(topic, WITHIN_S).topics[topic].partitions.values()
        return all(len(partition.isrs) == replicas for partition in found)

    def names(self) -> set[str]:
        return set(self._admin.list_topics(timeout=WITHIN_S).topics)

    def write(self, topic: str, values: Iterable[str | bytes], key: str | None = None, partition: int = 0) -> None:
        for value in values:
            self._producer.produce(topic, value, key, partition)
        assert self._producer.flush(WITHIN_S) == 0

    def ship(self, topic: str, file: str, messages: Iterable[str], host: str = "h1", partition: int = 0) -> None:
        """Write lines of a file as a shipper does: a JSON document a line."""
        self.write(topic, (json.dumps({"host": host, "file": file, "message": m}) for m in messages), file, partition)

    def transaction(self, topic: str, values: Iterable[str], commit: bool, partition: int = 0) -> None:
        with self.open_transaction(topic, values, commit, partition):
            pass

    @contextmanager
    def open_transaction(self, topic: str, values: Iterable[str], commit: bool = True, partition: int = 0) -> Iterator[None]:
        """Write in a transaction that ends with the block."""
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": uuid4().hex})
        producer.init_transactions(WITHIN_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=partition)
        producer.flush(WITHIN_S)
        yield
        (producer.commit_transaction if commit else producer.abort_transaction)(WITHIN_S)

    def until(self, holds: Callable[[], bool]) -> None:
        """Ask again and again until it holds: what a broker does by itself tells nobody that it is done."""
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline, "it did not come to pass"


def _done(futures: dict[object, object]) -> None:
    for future in futures.values():
        future.result(WITHIN_S)  # type: ignore[attr-defined]
