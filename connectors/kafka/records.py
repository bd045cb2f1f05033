"""What a record holds: lines as they are, or a shipper's JSON document around one. Pure.

A shipper (Filebeat, Fluent Bit, Vector, kafka-python in a script) names the host and the file that a line is from; those name
the stream. A document that also names a level or a logger was written by the program itself: it says more than its message, so
it stays as it is, for engine/parse to read. Source of the field names: ECS field reference; Fluent Bit, Kubernetes filter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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


class Run(NamedTuple):
    """Records that are raw lines, or documents about one file: their lines, how many bytes each record has of them, and whose
    they are."""

    data: bytes
    sizes: Sequence[int]
    said: Content


def run_of(values: Sequence[bytes]) -> Run | None:
    """Return what records hold that say alike who they are from; None when each has to be asked by itself: then `content` does.

    What a shipper writes one after the other is read together at less than half the cost.
    """
    if values[0].startswith(b"{"):
        return _documents_of(values)
    return None if any(value.startswith(b"{") for value in values) else _run(values, Content(b""))


def _documents_of(values: Sequence[bytes]) -> Run | None:
    try:
        columns = _columns([orjson.loads(value) for value in values])
    except (ValueError, KeyError):
        return None
    if any(isinstance(value, str) and value for values in _values(columns, _PROGRAM) for value in values):
        return None
    messages, hosts, files = (_texts(columns, names) for names in (_MESSAGE, _HOST, _FILE))
    if not messages or hosts is None or files is None or len({*hosts}) > 1 or len({*files}) > 1:
        return None
    host, file = next(iter(hosts), ""), next(iter(files), "")
    return _run([message.encode() for message in messages], Content(b"", host, file)) if host or file else None


def _run(parts: Sequence[bytes], said: Content) -> Run:
    data = b"\n".join(parts) + b"\n"
    if data.count(b"\n") > len(parts):  # some of them have more than one line, or a line end
        parts = [_ended(part) for part in parts]
        return Run(b"".join(parts), [len(part) for part in parts], said)
    return Run(data, [len(part) + 1 for part in parts], said)


def _columns(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[Any]]:
    """Return what stands under each key in documents with the same keys. Raises KeyError when they are not alike."""
    if {*map(type, documents)} != {dict} or len({*map(len, documents)}) > 1:
        raise KeyError
    return {key: [document[key] for document in documents] for key in documents[0]}


def _texts(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> Sequence[str] | None:
    """Return what `first` returns of each of some documents with the same keys; empty when it is None of all, None when they
    do not say it in the same place."""
    for values in _values(columns, names):
        kinds = {*map(type, values)}
        if kinds == {str}:
            return values
        if str in kinds:
            return None
    return ()


def _values(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> Iterator[Sequence[Any]]:
    """Yield what stands under each of some names in documents with the same keys, where anything may."""
    for name in names:
        head, _, rest = name.partition(".")
        if name in columns:
            yield columns[name]
        elif rest and head in columns:
            inner = columns[head]
            if inner.count(inner[0]) == len(inner):  # what comes from one place: compared faster than asked
                inner = inner[:1]
            yield [_at(each, rest) if isinstance(each, dict) else None for each in inner]


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
