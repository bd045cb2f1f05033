"""The log of a command that runs for long, on standard error: sentences for people, or one JSON object a line.

The format is that of the process: failures are printed where no option is at hand any more (main.py).
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any

import typer

from engine.cli.output import count
from engine.errors import DiagnosticsError

ALIVE_EVERY_S = 600.0
OWN_LOGGER = "tocsin"


class LogFormat(str, Enum):
    """How a line of the log is written."""

    TEXT = "text"
    JSON = "json"


class LogLevel(str, Enum):
    """How much a line of the log matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class _OwnLog:
    format = LogFormat.TEXT


_log = _OwnLog()
_writing = threading.RLock()  # a signal handler may write within a write


class _JsonHandler(logging.Handler):
    """Writes what packages log."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(record)
        except Exception:
            self.handleError(record)

    def _write(self, record: logging.LogRecord) -> None:
        level = LogLevel.ERROR if record.levelno >= logging.ERROR else LogLevel.WARNING
        level = LogLevel.INFO if record.levelno < logging.WARNING else level
        fields = {"exception": logging.Formatter().formatException(record.exc_info)} if record.exc_info else {}
        _write_json(record.getMessage(), record.name, level, fields)


def use_log_format(format: LogFormat) -> LogFormat:
    """Use a format from now on, also for what packages log and warn of; return it. The callback of LogFormatOption."""
    _log.format = format
    root = logging.getLogger()
    for handler in [handler for handler in root.handlers if isinstance(handler, _JsonHandler)]:
        root.removeHandler(handler)
    if format is LogFormat.JSON:
        root.addHandler(_JsonHandler())
    logging.captureWarnings(format is LogFormat.JSON)
    return format


LogFormatOption = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar="TOCSIN_LOG_FORMAT",
        callback=use_log_format,
        help="Of what it says on standard error: sentences, or one JSON object a line.",
    ),
]


def say(
    sentence: str, logger: str = OWN_LOGGER, level: LogLevel = LogLevel.INFO, fields: Mapping[str, Any] | None = None
) -> None:
    """Write a sentence to the log. `fields` are values for programs, which JSON has besides."""
    if _log.format is LogFormat.JSON:
        _write_json(sentence, logger, level, fields or {})
    else:
        _write_line(f"tocsin: {sentence}")


def saying(command: str, level: LogLevel = LogLevel.INFO) -> Callable[[str], None]:
    """Return a function that writes a sentence of a command to the log."""
    return partial(say, logger=f"{OWN_LOGGER}.{command}", level=level)


def report_failure(error: Exception, text: str) -> None:
    """Write the failure that ends the command: `text`, or in JSON an object for it, or for each of its diagnostics."""
    if _log.format is LogFormat.TEXT:
        _write_line(text)
    elif isinstance(error, DiagnosticsError):
        for diagnostic in error.diagnostics:
            fields = {
                "code": diagnostic.code,
                "path": str(diagnostic.path),
                "line": diagnostic.line,
                "column": diagnostic.column,
                "help": diagnostic.help,
            }
            _write_json(diagnostic.message, OWN_LOGGER, LogLevel.ERROR, fields)
    else:
        _write_json(str(error), OWN_LOGGER, LogLevel.ERROR, {})


def report_defect(traceback: str, text: str) -> None:
    """Write an exception that is a defect: its traceback, and `text`."""
    if _log.format is LogFormat.TEXT:
        _write_line(f"{traceback}{text}")
    else:
        _write_json(text, OWN_LOGGER, LogLevel.ERROR, {"exception": traceback})


def _write_json(message: str, logger: str, level: LogLevel, fields: Mapping[str, Any]) -> None:
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"time": at, "level": level.value, "logger": logger, "message": message, "fields": dict(fields)}
    _write_line(json.dumps(line, ensure_ascii=False, default=str))


def _write_line(text: str) -> None:
    """Write a line in one write, as threads write at the same time: without a buffer `print` makes two of it."""
    with _writing:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class IdleNotice:
    """Says every ALIVE_EVERY_S that a job without input is alive. Used by one thread.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said_s = self._heard_s = clock()
        self._batches = 0

    def sentence(self, lines: int) -> str:
        """Take a stored batch with so many lines; return the sentence that is due, empty for none."""
        now_s = self._clock()
        if lines:
            self._said_s = self._heard_s = now_s
            self._batches = 0
            return ""
        self._batches += 1
        if now_s - self._said_s < ALIVE_EVERY_S:
            return ""
        self._said_s = now_s
        quiet = f"no line for {round((now_s - self._heard_s) / 60)} min"
        return f"at work; {quiet} ({count(self._batches, 'batch', 'batches')} without one)"
