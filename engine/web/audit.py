"""The audit of the pages: a file with a line of JSON for each sign-in, refusal and act, with time, person and address."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Protocol

from engine.errors import UsageError
from engine.rights import make_file, make_folder

MOST_BYTES, FILES = 5_000_000, 5  # of a file, and how many older ones are left
_MOST_TEXT = 300  # characters of a value


class PageAudit(Protocol):
    """Takes the events of the pages."""

    def __call__(self, event: str, user: str, address: str, **details: str) -> None:
        """Record an event: who, from where, and what else is known. Never raises."""


class AuditFile:
    """Appends events to the file at `path`, which only this user can read. At MOST_BYTES it becomes `<path>.1`, and the oldest
    of FILES goes. May be used by several threads.

    Raises UsageError when the file cannot be written to.
    """

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        try:
            make_folder(path.parent)
            make_file(path)
            self._handler = _PrivateHandler(path, maxBytes=MOST_BYTES, backupCount=FILES, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: the audit of the pages cannot be written ({error.strerror})") from None
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def __call__(self, event: str, user: str, address: str, **details: str) -> None:
        """Append one event; texts are cut to 300 characters. A full disk is reported on stderr and stops nothing."""
        value = {"at": self._clock().isoformat(timespec="milliseconds"), "event": event, "user": user, "address": address}
        value |= details
        line = json.dumps({name: text[:_MOST_TEXT] for name, text in value.items() if text})
        self._handler.handle(logging.LogRecord("tocsin.audit", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Close the file."""
        self._handler.close()


def no_audit(event: str, user: str, address: str, **details: str) -> None:
    """Record nothing: the pages without users change nothing."""


class _PrivateHandler(RotatingFileHandler):
    def _open(self) -> object:  # type: ignore[override]
        return os.fdopen(os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8")
