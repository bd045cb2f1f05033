"""What a record holds: lines as they are, or a shipper's JSON document around one. Pure.

A shipper (Filebeat, Fluent Bit, Vector, kafka-python in a script) names the host and the file that a line is from; those name
the stream. A document that also names a level or a logger was written by the program itself: it says more than its message, so
it stays as it is, for engine/parse to read. Source of the field names: ECS field reference; Fluent Bit, Kubernetes filter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

_MESSAGE = ("message", "log")
_HOST = ("host.name", "host.hostname", "host", "hostname", "agent.hostname", "kubernetes.pod.name", "kubernetes.pod_name")
_FILE = ("file", "log.file.path", "file.path", "filename", "path", "source")
_PROGRAM = ("level", "log.level", "logger", "log.logger", "logger_name", "stack_trace", "error.stack_trace")
_PROGRAM_KEYS = {key for name in _PROGRAM for key in (name, name.partition(".")[0])}


class Content(NamedTuple):
    """The lines of a record, each with its line end, and who they are from, as far as the record says ("" where it does not).

    `fields` is the shipper's document, empty for raw lines.
    """

    data: bytes
    host: str = ""
    file: str = ""
    fields: Mapping[str, Any] = {}


def content(value: bytes) -> Content:
    """Return what `value` holds. Never fails: what is no shipper's document is lines."""
    document = _document(value)
    if document is None:
        return Content(_ended(value))
    message, host, file = first(document, _MESSAGE), first(document, _HOST), first(document, _FILE)
    if message is None or not (host or file):
        return Content(_ended(value))
    data = value.replace(b"\n", b" ") if _by_program(document) else message.encode("utf-8", "surrogatepass")
    return Content(_ended(data), host or "", file or "", document)


def stream_name(topic: str, partition: int, key: str, said: Content) -> str:
    """Return the source_id of a record's lines; `#` is escaped because it names containers inside a stream (model/records)."""
    if said.host or said.file:
        name = f"{topic}/{said.host}:{said.file}" if said.host and said.file else f"{topic}/{said.host or said.file}"
    else:
        name = f"{topic}/{key}" if key else f"{topic}-{partition}"
    return name.replace("#", "%23")


def first(document: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` that holds text; a dotted name is also looked for step by step."""
    for name in names:
        if isinstance(value := _at(document, name), str):
            return value
    return None


def _by_program(document: Mapping[str, Any]) -> bool:
    if _PROGRAM_KEYS.isdisjoint(document):
        return False
    return any(isinstance(value := _at(document, name), str) and value for name in _PROGRAM)


def _document(value: bytes) -> Mapping[str, Any] | None:
    if not value.startswith(b"{"):
        return None
    try:
        loaded = _loaded(value)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _loaded(text: bytes) -> Any:
    """Return a JSON text's value; what the fast library does not take (NaN, half a surrogate pair) Python's own may."""
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


def _at(document: Mapping[str, Any], name: str) -> Any:
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return _at(inner, rest) if isinstance(inner, dict) else None


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"
