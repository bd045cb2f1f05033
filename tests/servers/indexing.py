"""Logs in Elasticsearch as shippers put them there, and what happens to indices meanwhile: short to say in a test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct

from connectors.elasticsearch import open_source
from connectors.elasticsearch.source import ElasticsearchSource
from connectors.files import find
from tests.servers.elasticsearch import ElasticsearchNode

READ_AT = datetime(2022, 10, 5, 12, 0, 0, tzinfo=UTC)  # when shippers read what the stories tell of
BULK = 500
_PERIOD = re.compile(r"\.\d{4}(-\d\d){2,3}$")  # what a rotated file has behind the name it was written under

_STAMP = re.compile(r"20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d")

Document = Mapping[str, Any]


class Line(Struct, frozen=True):
    """A line of a file of a host: the byte that it begins at, its number from 0 on, and about when it was written."""

    host: str
    file: str
    text: str
    offset: int
    number: int
    written: datetime = READ_AT

    @property
    def read_at(self) -> str:
        """When a shipper read it, to the millisecond: ten lines in one."""
        return f"{self.written + timedelta(milliseconds=self.number // 10):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"

    @property
    def printed_at(self) -> str:
        """When a container runtime took it, to the nanosecond."""
        return f"{self.written + timedelta(microseconds=self.number):%Y-%m-%dT%H:%M:%S.%f}000Z"


def filebeat(line: Line) -> Document:
    return {
        "@timestamp": line.read_at,
        "agent": {"type": "filebeat", "version": "8.15.3", "name": line.host, "id": "5d2f0c1a"},
        "ecs": {"version": "8.0.0"},
        "host": {"name": line.host, "os": {"name": "Ubuntu"}},
        "input": {"type": "filestream"},
        "log": {"offset": line.offset, "file": {"path": line.file, "device_id": "64512", "inode": "1312"}},
        "message": line.text,
    }


def fluent_bit(line: Line) -> Document:
    return {
        "@timestamp": line.printed_at,
        "log": line.text,
        "stream": "stdout",
        "time": line.printed_at,
        "kubernetes": {"pod_name": line.host, "namespace_name": "kafka", "container_name": line.file},
    }


def elastic_agent(line: Line) -> Document:
    return {
        "@timestamp": line.read_at,
        "data_stream": {"type": "logs", "dataset": "kafka.log", "namespace": "default"},
        "elastic_agent": {"id": "5d2f0c1a", "version": "9.5.0", "snapshot": False},
        "agent": {"type": "filebeat", "name": line.host},
        "event": {"dataset": "kafka.log", "ingested": line.read_at, "agent_id_status": "verified"},
        "host": {"hostname": line.host, "name": line.host, "architecture": "x86_64"},
        "log": {"offset": line.offset, "file": {"path": line.file, "fingerprint": "445d01af"}},
        "message": line.text,
    }


SHAPES: Mapping[str, Callable[[Line], Document]] = {
    "Filebeat": filebeat,
    "Fluent Bit": fluent_bit,
    "Elastic Agent": elastic_agent,
}


def lines_of(folder: Path) -> Iterator[list[Line]]:
    """Yield the lines of each log of a story, whose host is its folder. Rotated files are one with the file that they were."""
    logs: dict[tuple[str, str], list[Line]] = {}
    paths = [Path(name) for name in find([str(folder)]).files]
    end = max(filter(None, (_stamp(text) for path in paths for text in path.read_text().split("\n"))), default=READ_AT)
    for path in sorted(paths, key=lambda path: (path.parent, not _PERIOD.search(path.name), path.name)):
        log = logs.setdefault((path.parent.name, _PERIOD.sub("", path.name)), [])
        offset = log[-1].offset + len(log[-1].text.encode()) + 1 if log else 0
        for text in path.read_text(encoding="utf-8").removesuffix("\n").split("\n"):
            written = _stamp(text) or (log[-1].written if log else end)
            log.append(Line(path.parent.name, _PERIOD.sub("", path.name), text, offset, len(log), written))
            offset += len(text.encode()) + 1
    yield from logs.values()


def _stamp(text: str) -> datetime | None:
    """Return the time that a line of a story is written at, which is in Korea."""
    stamp = _STAMP.search(text)
    return None if stamp is None else datetime.fromisoformat(f"{stamp[0]}+09:00").astimezone(UTC)


class Index:
    """An index or data stream of a name of its own. `shards` and `settings` are those of every index that it has one after the
    other; a data stream is one."""

    def __init__(self, node: ElasticsearchNode, name: str = "", shards: int = 1, stream: bool = False, **settings: Any) -> None:
        self.node, self.name = node, name or f"logs-{uuid4().hex[:8]}"
        self._creates = stream
        template: dict[str, Any] = {
            "index_patterns": [f"{self.name}*"],
            "priority": 500,
            "template": {"settings": {"number_of_replicas": 0, "number_of_shards": shards, **settings}},
        }
        node.call("PUT", f"/_index_template/{self.name}", {**template, **({"data_stream": {}} if stream else {})})

    def source(self, **settings: Any) -> ElasticsearchSource:
        """Return it as a source."""
        return open_source({"connection": {"urls": [self.node.url]}, "indices": f"{self.name}*", **settings})

    def write(self, documents: Iterable[Document], index: str = "", ids: Sequence[str] = ()) -> None:
        """Index documents in order; those of one call that has no more than BULK come in one request."""
        some = list(documents)
        name = index or self.name
        for at in range(0, len(some), BULK):
            part = some[at : at + BULK]
            named = [{"_id": id_} for id_ in ids[at : at + BULK]] or [{}] * len(part)
            kind = "create" if self._creates else "index"
            lines = [each for about, document in zip(named, part, strict=True) for each in ({kind: about}, document)]
            answer = self.node.call("POST", f"/{name}/_bulk", lines)
            assert not answer["errors"], answer

    def say(self, *texts: str, file: str = "a.log", host: str = "h", **fields: Any) -> None:
        """Index lines of a file, a document each, without a place in it."""
        about = {"@timestamp": "2026-01-01T00:00:00Z", "host": {"name": host}, "log": {"file": {"path": file}}}
        self.write({**about, "message": text, **fields} for text in texts)

    def rollover(self) -> None:
        self.node.call("POST", f"/{self.name}/_rollover")

    def indices(self) -> list[str]:
        """Return the concrete indices, oldest first."""
        return sorted(self.node.call("GET", f"/{self.name}*/_settings"))

    def snapshot(self) -> None:
        """Take a snapshot of it."""
        where = {"type": "fs", "settings": {"location": self.name}}
        self.node.call("PUT", f"/_snapshot/{self.name}", where)
        self.node.call("PUT", f"/_snapshot/{self.name}/one?wait_for_completion=true", {"indices": self.name})

    def restore(self) -> None:
        """Put the snapshot over it."""
        self.call("POST", "_close")
        self.node.call("POST", f"/_snapshot/{self.name}/one/_restore?wait_for_completion=true", {"indices": self.name})

    def call(self, method: str, path: str, body: Any = None, index: str = "") -> Any:
        return self.node.call(method, f"/{index or self.name}/{path}".rstrip("/"), body)
