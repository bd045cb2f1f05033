"""A JSON document a line: logstash-logback-encoder, ECS, GELF, log4j2's and Quarkus' layouts, python-json-logger, pino, zap,
and what log shippers write around a plain line.

The message, the reason and the stack trace become the text. Documents that were torn (a paste that lost its first brace or its
end, a line over the bound) are read as far as they go. A document that names a level or a logger was written by the program
itself and is one whole event; one that does not is a shipper's envelope, and its message is a plain line as any other.
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
DEPTH = 2  # of dicts within the document
_TEXT = (
    "message", "msg", "short_message", "log", "event", "line", "textPayload", "_raw",
    "@m", "RenderedMessage", "@mt", "MessageTemplate", "Message", "log.message",
)  # fmt: skip
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
    "logger": ("logger_name", "log.logger", "logger", "loggerName", "_logger_name", "_log_logger", "SourceContext", "Category"),
    "thread": ("thread_name", "process.thread.name", "thread", "threadName", "_thread_name", "_process_thread_name"),
}  # fmt: skip
_LABELS = {"host": ("_HOSTNAME", "host", "hostName", "host.name"), "container": ("fields.container",), "pod": ("fields.pod",)}
_CONNECT = ("connector.context", "mdc.connector.context", "contextMap.connector.context")
_CONTEXT = re.compile(r"\[([^|\]\s]+)\|(?:task-(\d+)|worker)")
# an Elasticsearch hit, Google Cloud; then, whose own keys count first, Datadog and Splunk
_INSIDE = ("_source", "jsonPayload", "content", "result")
_QUOTED = tuple(f'"{key}"' for key in _TEXT)
_EXPLAINING = frozenset((*_TRACE, *_REASON, *_CLASS))
# what a program of no known layout calls its error: sarama_error, cause, lastError, kafka.error_message
_CAUSE = re.compile(
    r"(?:.*(?:[._-]|[a-z](?=[EC])))?(?i:err|error|exception|cause)(?i:[._-]?(?:message|msg|text|details?|string))?"
)
# what kafkajs and franz-go say in keys of their own stands in the message of Java's client, in the words that are put there;
# the second of each is such a key where the message speaks of groups, or of brokers
_GROUP = ("groupId", "group")
_BROKER = ("broker", "addr")
_RECORD = ("topic", "partition", "offset")
_ADDRESS = re.compile(r"(?:[\w.\-\[\]]{1,255}|\[\w{1,20}://[^\]\s]{1,255}\]):\d{1,5}")  # or one that holds a protocol
_ANSWER_CODE = "error_code"  # what REST servers of Confluent answer; their clients print it behind the message, in these words
_LABELLING = frozenset((*_CONNECT, *(key for keys in _LABELS.values() for key in keys)))
_PINO = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}
_LETTERS = frozenset("FEWID")
_SECONDS_DIGITS = 11  # a number of fewer counts seconds, of more milliseconds or finer
_PAIR = re.compile(r'"([@\w.]{1,64})"\s{0,9}:\s{0,9}(?:"([^"\\]*(?:\\.[^"\\]*)*)|(\d{1,19}(?:\.\d{1,9})?))')


def unwrap(record: Record) -> Record | None:
    """Return the document's message and trace as text, with its stamp, level, logger and thread."""
    document = _document(record.text)
    message = _first(document, _TEXT) if document else ""
    if not document or not message:
        return None
    fields = {name: value for name, keys in _FIELDS.items() if (value := _first(document, keys))}
    if level := _level(document):
        fields["level"] = level
    if "level" in fields and (name := _first(document, ("name",))):
        fields.setdefault("logger", name)
    by_program = "level" in fields or "logger" in fields
    if logger := record.fields.get("logger"):  # of a document in a program's message: who prints it is that program
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


def _text(document: Mapping[str, Any], message: str, by_program: bool) -> str:
    """Return the message with what explains it on the lines below: the stack trace, else the reason."""
    if _EXPLAINING.isdisjoint(document):
        code = document.get(_ANSWER_CODE)
        said = message if code is None else f"{message.rstrip()}; error code: {code}"
        return _below(said, _cause(document) if by_program else "")
    trace = _first(document, _TRACE).removeprefix(": ")
    kind, reason = _first(document, _CLASS), _first(document, _REASON)
    said = f"{kind}: {reason}" if kind and reason else reason
    if not trace:
        trace = said
    elif reason not in trace and reason not in message:  # zap's trace is of where it was logged
        trace = f"{said}\n{trace}"
    return _below(message, trace)


def _below(message: str, trace: str) -> str:
    return message.rstrip() if not trace or trace in message else f"{message.rstrip()}\n{trace.rstrip()}"


def _cause(document: Mapping[str, Any]) -> str:
    """Return the error that stands under a name of the program's own."""
    return _first(document, tuple(filter(_is_cause, document)))


@lru_cache(maxsize=4096)
def _is_cause(key: str) -> bool:
    return _CAUSE.fullmatch(key) is not None


def _group(document: Mapping[str, Any], message: str) -> str:
    group = _first(document, _GROUP if "group" in message else _GROUP[:1])
    return f" [groupId={group}]" if group and not any(c.isspace() for c in group) else ""


def _record(document: Mapping[str, Any], message: str) -> str:
    """Return which record the program was handed, as kafkajs says it where its handler fails."""
    topic, partition, offset = (document.get(key) for key in _RECORD)
    if not isinstance(topic, str) or not isinstance(partition, int) or not topic or topic in message:
        return ""
    return f"\n[topic={topic}, partition={partition}, offset={offset}]"


def _broker(document: Mapping[str, Any], message: str) -> str:
    address = _first(document, _BROKER if "broker" in message else _BROKER[:1])
    return f"\n[broker={address}]" if _ADDRESS.fullmatch(address) and address not in message else ""


def _when(document: Mapping[str, Any], record: Record) -> Mapping[str, Any]:
    """Return what the first stamp changes that is a time, and whether one before it is out of bounds."""
    read: dict[str, Any] = {}
    for key in _TIME:
        if "at" not in read and (value := document.get(key)) not in (None, ""):
            read |= _dated(record, value)
    return read


def _dated(record: Record, value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and not value.isdigit():
        return dated(record, value, "iso")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return {}
    text = str(value)
    return dated(record, f"{text}.0" if text.isdigit() and len(text) < _SECONDS_DIGITS else text, "epoch_ms")


def _level(document: Mapping[str, Any]) -> str:
    """Return the level of a document that numbers it: syslog's 0 to 7 (GELF), pino's 10 to 60; or has a letter for it
    (MongoDB); empty for others."""
    level = document.get("level", document.get("s"))
    if isinstance(level, str):
        return level if level in _LETTERS else ""
    if isinstance(level, bool) or not isinstance(level, int):
        return ""
    return _first(document, ("_level_name",)) or _PINO.get(level) or (str(level) if 0 <= level <= 7 else "")


def _labels(document: Mapping[str, Any]) -> Labels:
    """Return the machine, and the connector and task that Connect's logging context names."""
    if _LABELLING.isdisjoint(document):
        return {}
    found = {name: value for name, keys in _LABELS.items() if (value := _first(document, keys))}
    context = _CONTEXT.match(_first(document, _CONNECT))
    if context is not None:
        found["connector"] = context[1]
        found |= {"task": context[2]} if context[2] else {}
    return found


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the JSON object of a line, with what it holds of another."""
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
    """Return the keys of a broken document whose values are text or numbers, nesting ignored."""
    return {key: _number(number) if number else _unquoted(value) for key, value, number in reversed(_PAIR.findall(text))}


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _unquoted(value: str) -> str:
    try:
        return clean(str(json.loads(f'"{value}"', strict=False)))
    except ValueError:
        return value


def _first(document: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first of `keys` that holds text."""
    for key in keys:
        value = document.get(key)
        if value and isinstance(value, str):
            return value
    return ""


def _flat(document: Mapping[str, Any], depth: int = DEPTH) -> Mapping[str, Any]:
    """Return `document` with what it nests also under dotted keys, as far down as any key that is looked for goes."""
    nested = [(key, value) for key, value in document.items() if isinstance(value, dict)] if depth else []
    if not nested:
        return document
    flat = dict(document)
    for key, inner in nested:
        for name, value in _flat(inner, depth - 1).items():
            flat.setdefault(f"{key}.{name}", value)
    return flat
