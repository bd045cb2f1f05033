"""Logs in Kafka as a shipper puts them there: a record for each line, keyed by its file, in JSON that says where it is from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer

from connectors.files import find

WITHIN_S = 60
_PERIOD = re.compile(r"\.\d{4}(-\d\d){2,3}$")  # what a rotated file has behind the name it was written under


def record(host: str, file: str, line: str) -> bytes:
    """Return the value of the record of one line."""
    return json.dumps({"host": {"name": host}, "file": file, "message": line}, ensure_ascii=False).encode()


def make_topic(address: str, topic: str, partitions: int) -> None:
    """Make a topic of one replica."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}})
    finally:
        admin.close()


def ship(address: str, topic: str, folder: Path) -> int:
    """Produce every line of the logs in `folder`, each file in order, and return how many there were.

    The host is the folder that a file lies in. Rotated files are one with the file that they were, as they are to a shipper
    that followed it: their lines come first, oldest period first.
    """
    producer = KafkaProducer(bootstrap_servers=address)
    try:
        sent = [
            producer.send(topic, record(host, file, line), key=f"{host}/{file}".encode())
            for host, file, lines in _files(folder)
            for line in lines
        ]
        producer.flush(WITHIN_S)
        return len([future.get(WITHIN_S) for future in sent])
    finally:
        producer.close()


def _files(folder: Path) -> Iterator[tuple[str, str, list[str]]]:
    paths = [Path(name) for name in find([str(folder)]).files]
    for path in sorted(paths, key=lambda path: (path.parent, not _PERIOD.search(path.name), path.name)):
        yield path.parent.name, _PERIOD.sub("", path.name), path.read_text(encoding="utf-8").splitlines()
