"""Records as a shipper writes them, into a topic of their own on a test broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from confluent_kafka import Producer

from tests.servers.shipping import WITHIN_S, make_topic, record

HOST, FILE = "bench-1", "/var/log/kafka/server.log"
KEY = f"{HOST}{FILE}"


class Producing:
    """A topic of one partition and its producer; what was sent is in the topic when the block ends."""

    def __init__(self, address: str, topic: str) -> None:
        self._address, self.name = address, topic
        make_topic(address, topic, partitions=1)
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.flush(WITHIN_S)

    def send(self, line: str) -> None:
        """Send one line of the one file there is."""
        self.send_records([record(HOST, FILE, line)])

    def send_records(self, values: Iterable[bytes]) -> None:
        """Send records of that file as they are."""
        for value in values:
            self._producer.produce(self.name, value, KEY)
        self._producer.poll(0)

    def settings(self, start: str) -> dict[str, object]:
        """Return the topic as the settings of its source."""
        return {"bootstrap_servers": self._address, "topic": self.name, "labels": {"cluster": "bench"}, "start": start}

    def source(self, start: str) -> str:
        """Return the topic as a source of tocsin.yml."""
        where = f"bootstrap_servers: '{self._address}', topics: [{self.name}]"
        return f"{{type: kafka, {where}, labels: {{cluster: bench}}, start: {start}}}"
