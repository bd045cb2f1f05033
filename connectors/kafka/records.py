"""What a record holds: lines as they are, or a shipper's JSON document around one. Pure.

A shipper (Filebeat, Fluent Bit, Vector, kafka-python in a script) names the host and the file that a line is from; those name
the stream. A document that also names a level or a logger was written by the program itself: it says more than its message, so
it stays as it is, for engine/parse to read. Source of the field names: ECS field reference; Fluent Bit, Kubernetes filter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MESSAGE = ("message", "log")
_HOST = ("host.name", "host.hostname", "host", "hostname", "agent.hostname", "kubernetes.pod.name", "kubernetes.pod_name")
_FILE = ("file", "log.file.path", "file.path", "filename", "path", "source")
_LINE = re.compile(rb'"(?:message|log)"\s*:\s*"([^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*)"')
_PROBE = b"<a line that nobody prints>"
MOST_ENVELOPES = 2000
_PROGRAM = ("level", "log.level", "logger", "log.logger", "logger_name", "stack_trace", "error.stack_trace")


@dataclass(frozen=True, slots=True)
class Content:
    """The lines of a record, each with its line end, and who they are from, as far as the record says ("" where it does not).

    `fields` is the shipper's document, empty for raw lines.
    """

    data: bytes
    host: str = ""
    file: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def content(value: bytes) -> Content:
    """Return what `value` holds. Never fails: what is no shipper's document is lines."""
    document = _document(value)
    if document is None:
        return Content(_ended(value))
    message, host, file = (first(document, names) for names in (_MESSAGE, _HOST, _FILE))
    if message is None or not (host or file):
        return Content(_ended(value))
    whole = any(first(document, (name,)) for name in _PROGRAM)
    data = value.replace(b"\n", b" ") if whole else message.encode("utf-8", "surrogatepass")
    return Content(_ended(data), host or "", file or "", document)


class Envelopes:
    """Reads records as `content` does, but remembers documents: a shipper writes the same around each line of a file.

    Of a remembered document `fields` are those of another line: not for whoever asks for fields.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], Content | None] = {}
        self._found = 0

    def content(self, value: bytes) -> Content:
        """Return what `value` holds."""
        line = _LINE.search(value) if value.startswith(b"{") else None
        if line is None or not line[1].isascii():  # bytes that are no UTF-8 make it no document
            return content(value)
        around = value[: line.start(1)], value[line.end(1) :]
        if around not in self._known:
            return self._learnt(around, value)
        known = self._known[around]
        self._found += 1
        text = line[1] if known is not None and b"\\" not in line[1] else _unescaped(line[1])
        if known is None or text is None:
            return content(value)
        return Content(_ended(text), known.host, known.file, known.fields)

    def _learnt(self, around: tuple[bytes, bytes], value: bytes) -> Content:
        if len(self._known) < MOST_ENVELOPES:
            probe = content(_PROBE.join(around))
            self._known[around] = probe if probe.data == _PROBE + b"\n" else None
        elif self._found > len(self._known):  # worth the while: others have taken their place
            self._known, self._found = {}, 0
        return content(value)


def stream_name(topic: str, partition: int, key: str, said: Content) -> str:
    """Return the source_id of a record's lines; `#` is escaped because it names containers inside a stream (model/records)."""
    if said.host or said.file:
        name = f"{topic}/{said.host}:{said.file}" if said.host and said.file else f"{topic}/{said.host or said.file}"
    else:
        name = f"{topic}/{key}" if key else f"{topic}-{partition}"
    return name.replace("#", "%23")


def first(document: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` that holds text; a dotted name is also looked for step by step."""
    return next((value for name in names if isinstance(value := _at(document, name), str)), None)


def _document(value: bytes) -> Mapping[str, Any] | None:
    if not value.startswith(b"{"):
        return None
    try:
        loaded = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _unescaped(text: bytes) -> bytes | None:
    """Return what a JSON string between its quotes says, None when it is none."""
    try:
        return str(json.loads(b'"%b"' % text)).encode("utf-8", "surrogatepass")
    except ValueError:
        return None


def _at(document: Mapping[str, Any], name: str) -> Any:
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return _at(inner, rest) if isinstance(inner, dict) else None


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"
