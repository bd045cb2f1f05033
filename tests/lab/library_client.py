"""A client of one of the libraries for Python as a program: `library_client.py LIBRARY DOES SETTINGS TOPIC NUMBER`.

LIBRARY is confluent or python, SETTINGS a file of `name=value` lines with the names Java gives them. writes: sends a record
of NUMBER bytes five times a second. reads: takes NUMBER seconds for each record. What fails is logged, and tried again.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import kafka
from confluent_kafka import Consumer, KafkaException, Producer
from kafka.errors import KafkaError

LOG = logging.getLogger("shop")


def _confluent_writes(settings: Mapping[str, str], topic: str, size: float) -> None:
    producer = Producer(settings)
    while True:
        try:
            producer.produce(
                topic, b"x" * int(size), on_delivery=lambda wrong, _: wrong and LOG.error("Not delivered: %s", wrong)
            )
        except KafkaException as wrong:
            LOG.error("Cannot send: %s", wrong)
        producer.poll(0.2)


def _confluent_reads(settings: Mapping[str, str], topic: str, seconds: float) -> None:
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(1)
        if message is not None and message.error():
            LOG.error("Cannot read: %s", message.error())
        elif message is not None:
            time.sleep(seconds)


def _python_writes(settings: Mapping[str, str], topic: str, size: float) -> None:
    producer = kafka.KafkaProducer(**_as_python(settings))
    while True:
        try:
            producer.send(topic, b"x" * int(size)).add_errback(lambda wrong: LOG.error("Not delivered: %r", wrong))
        except KafkaError as wrong:
            LOG.error("Cannot send: %r", wrong)
        time.sleep(0.2)


def _python_reads(settings: Mapping[str, str], topic: str, seconds: float) -> None:
    for _ in kafka.KafkaConsumer(topic, **_as_python(settings)):
        time.sleep(seconds)


def _as_python(settings: Mapping[str, str]) -> dict[str, Any]:
    return {name.replace(".", "_"): int(value) if value.isdecimal() else value for name, value in settings.items()}


DOES: Mapping[tuple[str, str], Callable[[Mapping[str, str], str, float], None]] = {
    ("confluent", "writes"): _confluent_writes,
    ("confluent", "reads"): _confluent_reads,
    ("python", "writes"): _python_writes,
    ("python", "reads"): _python_reads,
}


def main(library: str, does: str, settings: str, topic: str, number: str) -> None:
    """Do it until killed."""
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    said = dict(line.split("=", 1) for line in Path(settings).read_text(encoding="utf-8").splitlines())
    DOES[library, does](said, topic, float(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
