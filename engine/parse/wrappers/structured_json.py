"""One JSON document a line: logstash-logback-encoder, ECS, GELF, log4j2's and Quarkus' layouts, python-json-logger, pino, zap,
and the documents that log shippers put around a plain line.

The message, the reason and the stack trace become the text. A torn document (a paste without its first brace or its end, a line
over the bound) is read as far as it goes. A document with a level or a logger was written by the program itself and is one
whole event. One without either is the envelope of a shipper, and its message is a plain line like any other.
Source: ECS field reference (message, log.level, log.logger, process.thread.name, error.stack_trace); logstash-logback-encoder;
GELF 1.1 payload specification; log4j2 JsonLayout; Serilog's compact format; .NET's JSON console;
Quarkus and Spring Boot structured logging; pino (levels 10 to 60).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from engine.codec import foreign
from engine.model.records import Labels, Record
from engine.parse.lines import clean
from engine.parse.stamps import dated

FIRST = '{"'
ORDER = 50
DEPTH = 2  # levels of nested objects that are read
_TEXT = (
    "message", "msg", "short_message", "log", "event", "line", "textPayload", "_raw",
    "@m", "RenderedMessage", "@mt", "MessageTemplate", "Message", "log.message",
)  # fmt: skip
_ENVELOPED = ("message", "log")  # where shippers put a line
_TRACE = (
    "stack_trace", "error.stack_trace", "exception.stacktrace", "stackTrace", "full_message", "exc_info", "exception",
    "thrown.extendedStackTrace", "_error_stack_trace", "_stack_trace", "err.stack", "stacktrace", "stack", "@x", "Exception",
)  # fmt: skip
_REASON = ("error.message", "err.message", "thrown.message", "thrown.localizedMessage", "err", "error")
_CLASS = ("error.type", "err.type", "thrown.name")
_TIME = (
    "@timestamp", "timestamp", "time", "ts", "asctime", "timeMillis", "instant.epochSecond", "date",
    "t.$date", "@t", "Timestamp", "_time",
)  # fmt: skip
_TORN = re.compile(r'\{?"(?:@?timestamp|time|ts|log\.level|level|severity|caller|msg|message)":')
_FIELDS = {
    "level": (
        "level", "log.level", "severity", "levelname", "loglevel", "_level_name", "_log_level", "@l", "Level", "LogLevel",
    ),
    "logger": (
        "logger_name", "log.logger", "logger", "loggerName", "_logger_name", "_log_logger", "SourceContext", "Category",
        "kafka.log.class",
    ),
    "thread": ("thread_name", "process.thread.name", "thread", "threadName", "_thread_name", "_process_thread_name"),
}  # fmt: skip
_LABELS = {"host": ("_HOSTNAME", "host", "hostName", "host.name"), "container": ("fields.container",), "pod": ("fields.pod",)}
_CONNECT = ("connector.context", "mdc.connector.context", "contextMap.connector.context")
_CONTEXT = re.compile(r"\[([^|\]\s]+)\|(?:task-(\d+)|worker)")
# the nested object with the log's fields: of an Elasticsearch hit and of Google Cloud its keys win over those around it;
# of Datadog and Splunk they do not
_INSIDE = ("_source", "jsonPayload", "content", "result")
_QUOTED = tuple(f'"{key}"' for key in _TEXT)
_EXPLAINING = frozenset((*_TRACE, *_REASON, *_CLASS))
# the keys under which programs of no known layout put their error: sarama_error, cause, lastError, kafka.error_message
_CAUSE = re.compile(
    r"(?:.*(?:[._-]|[a-z](?=[EC])))?(?i:err|error|exception|cause)(?i:[._-]?(?:message|msg|text|details?|string))?"
)
# kafkajs and franz-go have keys for what the Java client prints in its message; it is added to the text in the words of the
# Java client. The second key counts only where the message mentions a group, or a broker
_GROUP = ("groupId", "group")
_BROKER = ("broker", "addr")
_RECORD = ("topic", "partition", "offset")
_ADDRESS = re.compile(r"(?:[\w.\-\[\]]{1,255}|\[\w{1,20}://[^\]\s]{1,255}\]):\d{1,5}")  # also `[SSL://host]:port`
_ANSWER_CODE = "error_code"  # a key of Confluent's REST servers; their clients print `; error code:` behind the message
_LABELLING = frozenset((*_CONNECT, *(key for keys in _LABELS.values() for key in keys)))
_PINO = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_LETTERS = frozenset("FEWID")
SECONDS_DIGITS = 11  # a number with fewer digits is in seconds, any other in milliseconds or finer
_PAIR = re.compile(r'"([@\w.]{1,64})"\s{0,9}:\s{0,9}(?:"([^"\\]*(?:\\.[^"\\]*)*)|(\d{1,19}(?:\.\d{1,9})?))')


def unwrap(record: Record) -> Record | None:
    """Return the document's message and trace as text, with its stamp, level, logger and thread."""
    document = _document(record.text)
    message = _first(document, _TEXT) if document else ""
    if not document or not (message or _is_blank(document)):
        return None
    fields = {name: value for name, keys in _FIELDS.items() if (value := _first(document, keys))}
    if level := _level(document):
        fields["level"] = level
    if "level" in fields and (name := _first(document, ("name",))):
        fields.setdefault("logger", name)
    by_program = "level" in fields or "logger" in fields
    if logger := record.fields.get("logger"):  # the document is the message of another one, whose program logged it
        fields["logger"] = logger
    text = _text(document, message + _group(document, message), by_program)
    return replace(
        record,
        text=text + _record(document, message) + _broker(document, message),
        starts=record.starts or by_program,
        fields=fields if by_program else {},
        labels={**_labels(document), **record.labels},
        **_when(document, record),
    )


def _is_blank(document: Mapping[str, Any]) -> bool:
    """Return whether a document is around a blank line, as within a stack trace."""
    return any(document.get(name) == "" for name in _ENVELOPED)


def _text(document: Mapping[str, Any], message: str, by_program: bool) -> str:
    """Return the message, and below it the stack trace; where there is none, the reason."""
    if _EXPLAINING.isdisjoint(document):
        code = document.get(_ANSWER_CODE)
        if code is None and not by_program:
            return message.rstrip("\r\n")  # the line as it is
        answer = message if code is None else f"{message.rstrip()}; error code: {code}"
        return _with_trace(answer, _cause(document) if by_program else "")
    trace = _first(document, _TRACE).removeprefix(": ")
    kind, reason = _first(document, _CLASS), _first(document, _REASON)
    error = f"{kind}: {reason}" if kind and reason else reason
    if not trace:
        trace = error
    elif reason not in trace and reason not in message:  # zap's trace is of the place that logged it
        trace = f"{error}\n{trace}"
    return _with_trace(message, trace)


def _with_trace(message: str, trace: str) -> str:
    return message.rstrip() if not trace or trace in message else f"{message.rstrip()}\n{trace.rstrip()}"


def _cause(document: Mapping[str, Any]) -> str:
    """Return the error under a key of the program's own; empty when there is none."""
    return _first(document, tuple(filter(_is_cause, document)))


@lru_cache(maxsize=4096)
def _is_cause(key: str) -> bool:
    return _CAUSE.fullmatch(key) is not None


def _group(document: Mapping[str, Any], message: str) -> str:
    group = _first(document, _GROUP if "group" in message else _GROUP[:1])
    return f" [groupId={group}]" if group and not any(c.isspace() for c in group) else ""


def _record(document: Mapping[str, Any], message: str) -> str:
    """Return the topic, partition and offset of the Kafka record that kafkajs names when a handler fails; empty for others."""
    topic, partition, offset = (document.get(key) for key in _RECORD)
    if not isinstance(topic, str) or not isinstance(partition, int) or not topic or topic in message:
        return ""
    return f"\n[topic={topic}, partition={partition}, offset={offset}]"


def _broker(document: Mapping[str, Any], message: str) -> str:
    address = _first(document, _BROKER if "broker" in message else _BROKER[:1])
    return f"\n[broker={address}]" if _ADDRESS.fullmatch(address) and address not in message else ""


def _when(document: Mapping[str, Any], record: Record) -> Mapping[str, Any]:
    """Return the record's fields that the first valid stamp sets, and `misdated` when a stamp before it is out of bounds."""
    fields: dict[str, Any] = {}
    for key in _TIME:
        if "at" not in fields and (value := document.get(key)) not in (None, ""):
            fields |= _dated(record, value)
    return fields


def _dated(record: Record, value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and not value.isdigit():
        return dated(record, value, "iso")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return {}
    return dated(record, epoch_text(value), "epoch_ms")


def epoch_text(value: str | int | float) -> str:
    """Return a number since 1970 as a stamp of layout `epoch_ms`."""
    text = str(value)
    return f"{text}.0" if text.isdigit() and len(text) < SECONDS_DIGITS else text


def _level(document: Mapping[str, Any]) -> str:
    """Return the level of a document that has a number for it (syslog's 0 to 7 in GELF, pino's 10 to 60) or a letter (MongoDB);
    empty for others."""
    level = document.get("level", document.get("s"))
    if isinstance(level, str):
        return level if level in _LETTERS else ""
    if isinstance(level, bool) or not isinstance(level, int):
        return ""
    return _first(document, ("_level_name",)) or _PINO.get(level) or (str(level) if 0 <= level <= 7 else "")


def _labels(document: Mapping[str, Any]) -> Labels:
    """Return the labels of the machine and container, and of the connector and task in Connect's logging context."""
    if _LABELLING.isdisjoint(document):
        return {}
    labels = {name: value for name, keys in _LABELS.items() if (value := _first(document, keys))}
    context = _CONTEXT.match(_first(document, _CONNECT))
    if context is not None:
        labels["connector"] = context[1]
        labels |= {"task": context[2]} if context[2] else {}
    return labels


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object of a line, flat, together with the keys of an object nested under one of `_INSIDE`. None when the
    line is no JSON object or has no key of a message."""
    if not any(key in text for key in _QUOTED):
        return None
    try:
        loaded = foreign(text.rstrip(", ") if text.endswith((",", ", ")) else text)
    except (ValueError, RecursionError):
        return _torn(text) if _TORN.match(text) else None
    if not isinstance(loaded, dict):
        return None
    for name in _INSIDE:
        if isinstance(inner := loaded.get(name), dict):
            return _flat({**loaded, **inner} if name in _INSIDE[:2] else {**inner, **loaded})
    return _flat(loaded)


def _torn(text: str) -> Mapping[str, Any]:
    """Return the keys of a torn document that have text or a number as value; nesting is ignored, and the first of equal keys
    counts."""
    return {key: _number(number) if number else _unquoted(value) for key, value, number in reversed(_PAIR.findall(text))}


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _unquoted(value: str) -> str:
    try:
        return clean(str(json.loads(f'"{value}"', strict=False)))
    except ValueError:
        return value


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first value under `keys` that is a text and not empty; empty when there is none."""
    for key in keys:
        value = document.get(key)
        if value and isinstance(value, str):
            return value
    return ""


def _flat(document: Mapping[str, Any], depth: int = DEPTH) -> Mapping[str, Any]:
    """Return `document` with its nested values also under dotted keys, `depth` levels down."""
    nested = [(key, value) for key, value in document.items() if isinstance(value, dict)] if depth else []
    if not nested:
        return document
    flat = dict(document)
    for key, inner in nested:
        for name, value in _flat(inner, depth - 1).items():
            flat.setdefault(f"{key}.{name}", value)
    return flat
