"""What a record holds: lines as they are, or a shipper's JSON document around one. Pure.

A shipper (Filebeat, Fluent Bit, Vector, kafka-python in a script) names the host and the file that a line is from; those name
the stream. A document that also names a level or a logger was written by the program itself: it says more than its message, so
it stays as it is, for engine/parse to read. Source of the field names: ECS field reference; Fluent Bit, Kubernetes filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from connectors.kafka.shapes import Shapes, shape_around
from engine.codec import foreign

_MESSAGE = ("message", "log")
_HOST = ("host.name", "host.hostname", "host", "hostname", "agent.hostname", "kubernetes.pod.name", "kubernetes.pod_name")
_FILE = ("file", "log.file.path", "file.path", "filename", "path", "source")
_PROGRAM = ("level", "log.level", "logger", "log.logger", "logger_name", "stack_trace", "error.stack_trace")


def _keys(names: Iterable[str]) -> list[str]:
    """Return the keys under which what is called by these names may begin."""
    return sorted({key for name in names for key in (name, name.partition(".")[0])})


def _asked(keys: Iterable[str], **typed: Any) -> Any:
    """Return a type of documents that has these keys only, as they stand in the text but for the `typed` ones."""
    raw = {f"raw_{number}": key for number, key in enumerate(sorted({*keys} - typed.keys()))}
    fields = [(name, kind | None, None) for name, kind in typed.items()] + [(name, msgspec.Raw, msgspec.Raw()) for name in raw]
    return msgspec.defstruct("_Asked", fields, rename=raw, omit_defaults=True, gc=False)


_NAMES = (*_HOST, *_FILE, *_PROGRAM)
# `log` is the message to some; in ECS it holds where in the file the line was, which is another for each
_IN_LOG = _asked(_keys(name.removeprefix("log.") for name in _NAMES if name.startswith("log.")))
_ASKED = msgspec.json.Decoder(_asked(_keys(_NAMES), message=str, log=_IN_LOG | str))
_ENCODER = msgspec.json.Encoder()


class Content(Struct, frozen=True):
    """The lines of a record, each with its line end, and whose they are, as far as the record says ("" where it does not)."""

    data: bytes
    host: str = ""
    file: str = ""


class Run(Struct, frozen=True):
    """Records that are raw lines, or documents about one file: their lines, how many bytes each record has of them (None: each
    is one line), and whose they are. `examples`: what two documents say alike, all of them say; none where that is not known.
    """

    data: bytes
    sizes: Sequence[int] | None = None
    host: str = ""
    file: str = ""
    examples: tuple[bytes, ...] = ()


class _Whose(Struct, frozen=True):
    host: str = ""
    file: str = ""
    by_program: bool = False


_NOTHING: tuple[None, _Whose] = (None, _Whose())


def content(value: bytes) -> Content:
    """Return what `value` holds. Never fails: what is no shipper's document is lines."""
    message, whose = _read(value) if value.startswith(b"{") else _NOTHING
    if message is None or not (whose.host or whose.file):
        return Content(_ended(value))
    data = value.replace(b"\n", b" ") if whose.by_program else message.encode()
    return Content(_ended(data), whose.host, whose.file)


def run_of(values: Sequence[bytes], shapes: Shapes) -> Run | None:
    """Return what records hold that say alike who they are from; None when each has to be asked by itself: then `content` does.

    What a shipper writes one after the other is read together at a fraction of the cost, once its shape is known.
    """
    if not values[0].startswith(b"{"):
        return None if any(value.startswith(b"{") for value in values) else _run(values)
    shape = shapes.shape_of(values[0])
    if shape is None:
        return _documents_of(values, shapes)
    if not shape.fits(values[-1]):  # what has changed on the way is found sooner in fewer
        return None
    lines = shape.lines_in(values)
    return _documents_of(values, shapes) if lines is None else Run(*lines, shape.host, shape.file, shape.examples)


def fields_of(value: bytes) -> Mapping[str, Any]:
    """Return the document in a record, empty when it holds none."""
    return (_document(value) if value.startswith(b"{") else None) or {}


def _documents_of(values: Sequence[bytes], shapes: Shapes) -> Run | None:
    try:
        b"".join(values).decode()
        documents = list(map(_ASKED.decode, values))
    except (ValueError, RecursionError):
        return None
    key = "log" if documents[0].message is None else "message"
    messages = [message for message in map(_taken_out, documents) if message is not None]
    whose = _whose(_ENCODER.encode(documents[0]))
    if len(messages) < len(values) or not _all_of(whose, documents):
        return None
    if not (whose.host or whose.file):
        return _run(values)
    if whose.by_program:
        return _run([value.replace(b"\n", b" ") for value in values], whose.host, whose.file)
    for value in (values[0], values[-1]):
        shapes.learn(shape_around(value, whose.host, whose.file, key))
    return _run(list(map(str.encode, messages)), whose.host, whose.file)


def _all_of(whose: _Whose, documents: Sequence[Any]) -> bool:
    alike = documents.count(documents[0]) == len(documents)  # nearly always of what a shipper writes
    return alike or all(_whose(_ENCODER.encode(document)) == whose for document in documents)


def _run(parts: Sequence[bytes], host: str = "", file: str = "") -> Run:
    data = b"\n".join(parts) + b"\n"
    if data.count(b"\n") > len(parts):  # some of them have more than one line, or a line end
        parts = [_ended(part) for part in parts]
        return Run(b"".join(parts), list(map(len, parts)), host, file)
    return Run(data, None, host, file)


def _read(value: bytes) -> tuple[str | None, _Whose]:
    """Return the message of a document, None where there is none, and whose it is."""
    try:
        value.decode()  # what the decoder skips may be no UTF-8
        asked = _ASKED.decode(value)
    except (ValueError, RecursionError):
        document = _document(value)
        return (first(document, _MESSAGE), _whose_of(document)) if document is not None else _NOTHING
    message = _taken_out(asked)
    return message, _whose(_ENCODER.encode(asked))


def _taken_out(asked: Any) -> str | None:
    """Return the message of a document, which is then without it; None where there is none."""
    message: str | None = asked.message
    if message is not None:
        asked.message = None
    elif isinstance(asked.log, str):
        message, asked.log = asked.log, None
    return message


@lru_cache(maxsize=4096)
def _whose(about: bytes) -> _Whose:
    return _whose_of(_document(about) or {})


def _whose_of(document: Mapping[str, Any]) -> _Whose:
    by_program = any(isinstance(value := _at(document, name), str) and value for name in _PROGRAM)
    return _Whose(first(document, _HOST) or "", first(document, _FILE) or "", by_program)


def stream_name(topic: str, partition: int, key: str, said: Content | Run) -> str:
    """Return the source_id of a record's lines; `#` is escaped because it names containers inside a stream (model/records)."""
    if said.host or said.file:
        name = f"{topic}/{said.host}:{said.file}" if said.host and said.file else f"{topic}/{said.host or said.file}"
    else:
        name = f"{topic}/{key}" if key else f"{topic}-{partition}"
    return name.replace("#", "%23")


def first(document: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of `names` that holds text; a dotted name is also looked for step by step. Half a surrogate pair, which
    no text can hold, is a question mark."""
    for name in names:
        if isinstance(value := _at(document, name), str):
            return value.encode("utf-8", "replace").decode()
    return None


def _document(value: bytes) -> Mapping[str, Any] | None:
    try:
        loaded = foreign(value)
    except (ValueError, RecursionError):
        return None
    return loaded if isinstance(loaded, dict) else None


def _at(document: Mapping[str, Any], name: str) -> Any:
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return _at(inner, rest) if isinstance(inner, dict) else None


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"
