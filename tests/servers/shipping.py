"""Logs in Kafka as a shipper puts them there: a record for each line, keyed by its file, in JSON that says where it is from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from msgspec.structs import replace

from connectors.files import find, read_path
from connectors.kafka.offsets import RECORD_POSITIONS
from engine.model.records import Progress, RawLine

WITHIN_S = 60
STAMP_MS = 1_665_000_000_123
_PERIOD = re.compile(r"\.\d{4}(-\d\d){2,3}$")  # what a rotated file has behind the name it was written under


def record(host: str, file: str, line: str) -> bytes:
    """Return the value of the record of one line."""
    return json.dumps({"host": {"name": host}, "file": file, "message": line}, ensure_ascii=False).encode()


def _filebeat(host: str, file: str, line: str, number: int) -> Mapping[str, object]:
    # its fields come in another order each time, these begin at another
    fields = {
        "message": line,
        "log": _from({"offset": number * 163, "file": {"path": file, "device_id": "64512", "inode": "1312"}}, number // 7),
        "input": {"type": "filestream"},
        "ecs": {"version": "8.0.0"},
        "host": _from(
            {"name": host, "hostname": host, "os": {"name": "Ubuntu", "version": "22.04"}, "id": "c0ffee"}, number // 3
        ),
        "agent": {"name": host, "type": "filebeat", "version": "8.15.3", "id": "5d2f0c1a-0000-4000-8000-000000000000"},
    }
    about = {"@timestamp": _stamp(number, 3), "@metadata": {"beat": "filebeat", "type": "_doc", "version": "8.15.3"}}
    return about | _from(fields, number)


def _fluent_bit(host: str, _file: str, line: str, number: int) -> Mapping[str, object]:
    kubernetes = {"pod_name": host, "namespace_name": "kafka", "labels": {"app": "kafka"}, "container_name": "kafka"}
    return {"@timestamp": number / 1000, "log": line, "stream": "stdout", "time": _stamp(number, 9), "kubernetes": kubernetes}


def _vector(host: str, file: str, line: str, number: int) -> Mapping[str, object]:
    return {"file": file, "host": host, "message": line, "source_type": "file", "timestamp": _stamp(number, 9)}


SHIPPERS = {"Filebeat": _filebeat, "Fluent Bit": _fluent_bit, "Vector": _vector}


def document(shipper: str, host: str, file: str, line: str, number: int) -> bytes:
    """Return the value of a record as one of SHIPPERS writes it, around the line of this number."""
    return json.dumps(SHIPPERS[shipper](host, file, line, number), ensure_ascii=False, separators=(",", ":")).encode()


def _stamp(number: int, digits: int) -> str:
    at = datetime.fromtimestamp(STAMP_MS / 1000 + number, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{number % 1000 * 1001 * 1000:09d}"[: 20 + digits] + "Z"


def _from(fields: dict[str, object], first: int) -> dict[str, object]:
    """Return the fields in an order that begins with another."""
    names = list(fields)
    return {name: fields[name] for name in (*names[first % len(names) :], *names[: first % len(names)])}


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


def shipped(producer: KafkaProducer, topic: str, folder: Path) -> Iterator[RawLine | Progress]:
    """Produce the lines of a story as a shipper does, each as it is asked for; yield what `replay()` is to be given for it."""
    for path in find([str(folder)]).files:
        source_id, name = f"{topic}/{folder.name}:{Path(path).name}", Path(path).name
        labels = {"host": folder.name, "cluster": folder.name, "timezone": "Asia/Seoul"}
        for item in read_path(path):
            if isinstance(item, Progress):
                yield replace(item, source_id=source_id)
                continue
            value = record(folder.name, name, item.value.decode())
            sent = producer.send(topic, value, key=name.encode(), timestamp_ms=STAMP_MS).get(60)
            taken = datetime.fromtimestamp(STAMP_MS / 1000, UTC)
            yield RawLine(source_id, sent.offset * RECORD_POSITIONS, item.value, 0, taken, labels)
