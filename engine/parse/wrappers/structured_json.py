"""A JSON document a line: logstash-logback-encoder, ECS, Quarkus, and what log shippers write around a plain line.

The message and the stack trace become the text. Documents that were torn (a paste that lost its first brace or its end, a line
over the bound) are read as far as they go. A document that names a level or a logger was written by the program itself
and is one whole event; one that does not is a shipper's envelope, and its message is a plain line as any other.
Source: ECS field reference (message, log.level, log.logger, process.thread.name, error.stack_trace); logstash-logback-encoder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.model.records import Record
from engine.parse.times import parse_stamp

FIRST = '{"'
ORDER = 50
_TEXT = ("message", "msg", "short_message")
_TRACE = ("stack_trace", "error.stack_trace", "exception.stacktrace", "stackTrace", "full_message", "exception")
_TIME = ("@timestamp", "timestamp", "time", "ts")
_TORN = ('{"@timestamp"', '"@timestamp"')
_FIELDS = {
    "level": ("level", "log.level", "severity", "levelname", "loglevel"),
    "logger": ("logger_name", "log.logger", "logger", "loggerName"),
    "thread": ("thread_name", "process.thread.name", "thread", "threadName"),
}
_PAIR = re.compile(r'"([@\w.]{1,64})"\s{0,9}:\s{0,9}"([^"\\]*(?:\\.[^"\\]*)*)')


def unwrap(record: Record) -> Record | None:
    """Return the document's message and trace as text, with its stamp, level, logger and thread."""
    document = _document(record.text)
    message = _first(document, _TEXT) if document else ""
    if not document or not message:
        return None
    fields = {name: value for name, keys in _FIELDS.items() if (value := _first(document, keys))}
    trace = _first(document, _TRACE)
    text = f"{message.rstrip()}\n{trace.rstrip()}" if trace and trace not in message else message.rstrip()
    at = parse_stamp(_first(document, _TIME), "iso") or record.at
    return replace(record, text=text, at=at, starts=record.starts or bool(fields), fields=fields)


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object of a line; the source of an Elasticsearch hit, when it is one."""
    if not any(f'"{key}"' in text for key in _TEXT):
        return None
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError):
        return _torn(text) if text.startswith(_TORN) else None
    if not isinstance(loaded, dict):
        return None
    inner = loaded.get("_source", loaded)
    return inner if isinstance(inner, dict) else loaded


def _torn(text: str) -> Mapping[str, Any]:
    """Return the keys of a broken document whose values are text, nesting ignored."""
    return {key: _unquoted(value) for key, value in reversed(_PAIR.findall(text))}


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"', strict=False))
    except ValueError:
        return value


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first of `keys` that holds text; a dotted key is also looked for step by step."""
    return next((value for key in keys if isinstance(value := _at(document, key), str) and value), "")


def _at(document: Mapping[str, Any], key: str) -> Any:
    if key in document or "." not in key:
        return document.get(key)
    head, _, rest = key.partition(".")
    inner = document.get(head)
    return _at(inner, rest) if isinstance(inner, dict) else None
