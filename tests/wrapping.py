"""Logs as people have them: the same lines behind what containers, viewers and JSON layouts put around them.

`wrapped` takes plain lines and any chain of wrappers, innermost first. `odd` is the share of rows that are not what they should
be: lines split by a runtime, documents without a stamp or a level, a line that nobody wrapped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from msgspec import Struct

START = datetime(2022, 10, 5, 10, tzinfo=UTC)
_HEAD = re.compile(r"\[?(20\d\d-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{3}))?(?:Z|[+-]\d\d:\d\d)?\]?\s+")
_LEVEL = re.compile(r"(?:\[[\w-]+\] )?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +")
_LOGGER = re.compile(r" \(([\w.]+)\)$")


class Event(Struct, frozen=True):
    """An event as a program's JSON layout is given it; `raw` is how it would print it plainly."""

    at: datetime
    level: str
    logger: str
    message: str
    trace: str
    raw: str


def wrapped(lines: Iterable[str], wrappers: Sequence[str], random: Random, odd: float = 0.0) -> Iterator[str]:
    """Yield `lines` behind `wrappers`."""
    rows = iter(lines)
    for name in wrappers:
        rows = documents(rows, DOCUMENTS[name], random, odd) if name in DOCUMENTS else behind(rows, ROWS[name], random, odd)
    yield from rows


def mingled(histories: Sequence[Iterator[str]], random: Random) -> Iterator[str]:
    """Yield the rows of several histories, each in order, until one ends."""
    while True:
        row = next(random.choice(histories), None)
        if row is None:
            return
        yield row


def behind(lines: Iterable[str], row: Row, random: Random, odd: float) -> Iterator[str]:
    """Yield the rows that a runtime or a shipper makes of `lines`, taken a moment after their stamp."""
    at = START
    for line in lines:
        at = (_time(line) or at) + timedelta(microseconds=random.randrange(900))
        draw, half = random.random(), len(line) // 2
        if draw < odd / 2:
            yield line
        elif draw < odd and half:
            yield from (row(line[:half], at, False), row(line[half:], at, True))
        else:
            yield row(line, at, True)


def documents(lines: Iterable[str], layout: Layout, random: Random, odd: float) -> Iterator[str]:
    """Yield a document an event."""
    for event in events(lines):
        document = dict(layout(event))
        draw = random.random()
        if draw < odd / 4:
            yield event.raw
            continue
        if draw < odd:
            document.pop(random.choice(list(document)))
        if draw < odd / 2:
            document = {name: event.raw if value == event.message else value for name, value in document.items()}
        yield json.dumps(document, ensure_ascii=random.random() < 0.5)


def events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield the events of plain lines; each begins with a stamp."""
    held: list[str] = []
    for line in lines:
        if held and _HEAD.match(line):
            yield _event(held)
            held = []
        held.append(line)
    if held:
        yield _event(held)


def _event(lines: Sequence[str]) -> Event:
    text = _HEAD.sub("", lines[0], count=1)
    level, logger = _LEVEL.match(text), _LOGGER.search(text)
    message = _LOGGER.sub("", _LEVEL.sub("", text, count=1))
    return Event(
        at=_time(lines[0]) or START,
        level=level[1] if level else "INFO",
        logger=logger[1] if logger else "org.example.Main",
        message=message or "-",
        trace="\n".join(lines[1:]),
        raw="\n".join(lines),
    )


def _time(line: str) -> datetime | None:
    found = _HEAD.match(line)
    return None if found is None else datetime.fromisoformat(f"{found[1]}T{found[2]}.{found[3] or '000'}+00:00")


Row = Callable[[str, datetime, bool], str]
Layout = Callable[[Event], Mapping[str, Any]]


def _iso(at: datetime, digits: int) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}000"[: 20 + digits] + "Z"


def _docker(line: str, at: datetime, ends: bool) -> str:
    return json.dumps({"log": line + "\n" * ends, "stream": "stdout", "time": _iso(at, 9)})


def _docker_file(line: str, at: datetime, ends: bool) -> str:
    """As Go writes it: no blanks, angle brackets escaped, a stamp without zeros at its end."""
    row = {"log": line + "\n" * ends, "stream": "stderr", "time": re.sub(r"\.?0*Z", "Z", _iso(at, 9))}
    written = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shipper(line: str, at: datetime, _ends: bool) -> str:
    return json.dumps({"@timestamp": _iso(at, 3), "message": line or " ", "host": {"name": "n1"}})


ROWS: Mapping[str, Row] = {
    "compose": lambda line, at, ends: f"worker-1  | {line}",
    "compose 2": lambda line, at, ends: f"broker-1  | {line}",
    "kubectl": lambda line, at, ends: f"[pod/kafka-0/kafka] {line}",
    "cri": lambda line, at, ends: f"{_iso(at, 9)} stdout {'F' if ends else 'P'} {line}",
    "docker logs -t": lambda line, at, ends: f"{_iso(at, 9)} {line}",
    "docker json": _docker,
    "docker file": _docker_file,
    "journal": lambda line, at, ends: f"{at:%b} {at.day:2d} {at:%H:%M:%S} broker-1 kafka[4711]: {line}",
    "journal iso": lambda line, at, ends: f"{at:%Y-%m-%dT%H:%M:%S}+0000 broker-1 kafka[4711]: {line}",
    "shipper": _shipper,
}

DOCUMENTS: Mapping[str, Layout] = {
    "ecs": lambda event: {
        "@timestamp": _iso(event.at, 3),
        "log.level": event.level,
        "message": event.message,
        "ecs.version": "1.2.0",
        "process.thread.name": "main",
        "log.logger": event.logger,
        **({"error.stack_trace": event.trace} if event.trace else {}),
    },
    "logstash": lambda event: {
        "@timestamp": _iso(event.at, 9),
        "@version": "1",
        "message": event.message,
        "logger_name": event.logger,
        "thread_name": "main",
        "level": event.level,
        "level_value": 20000,
        **({"stack_trace": event.trace} if event.trace else {}),
    },
    "spring": lambda event: {
        "@timestamp": _iso(event.at, 6),
        "log": {"level": event.level, "logger": event.logger},
        "process": {"pid": 1, "thread": {"name": "main"}},
        "service": {"name": "orders"},
        "message": event.message,
        **({"error": {"type": "java.lang.X", "stack_trace": event.trace}} if event.trace else {}),
        "ecs": {"version": "8.11"},
    },
    "quarkus": lambda event: {
        "timestamp": _iso(event.at, 6).replace("Z", "+00:00"),
        "sequence": 17,
        "loggerName": event.logger,
        "level": event.level,
        "message": event.message,
        "threadName": "main",
        "hostName": "n1",
        **({"stackTrace": event.trace} if event.trace else {}),
    },
    "python": lambda event: {
        "asctime": f"{event.at:%Y-%m-%d %H:%M:%S},{event.at.microsecond // 1000:03d}",
        "levelname": event.level,
        "name": event.logger,
        "message": event.message,
        **({"exc_info": event.trace} if event.trace else {}),
    },
    "log4j2": lambda event: {
        "instant": {"epochSecond": int(event.at.timestamp()), "nanoOfSecond": event.at.microsecond * 1000},
        "thread": "main",
        "level": event.level,
        "loggerName": event.logger,
        "message": event.message,
        **({"thrown": {"name": "X", "extendedStackTrace": event.trace}} if event.trace else {}),
        "endOfBatch": False,
    },
    "pino": lambda event: {
        "level": {"DEBUG": 20, "INFO": 30, "WARN": 40, "ERROR": 50, "FATAL": 60}.get(event.level, 10),
        "time": int(event.at.timestamp() * 1000),
        "msg": event.message,
        **({"err": {"stack": event.trace}} if event.trace else {}),
    },
    "gelf": lambda event: {
        "version": "1.1",
        "host": "n1",
        "short_message": event.message,
        "timestamp": event.at.timestamp(),
        "level": {"DEBUG": 7, "INFO": 6, "WARN": 4, "ERROR": 3, "FATAL": 2}.get(event.level, 7),
        "_logger_name": event.logger,
        **({"full_message": event.trace} if event.trace else {}),
    },
}

CHAINS: Sequence[tuple[str, ...]] = (
    *((name,) for name in (*ROWS, *DOCUMENTS)),
    ("docker json", "compose"),
    ("ecs", "compose"),
    ("logstash", "kubectl"),
    ("spring", "cri"),
    ("log4j2", "docker json"),
    ("journal", "shipper"),
)
