"""A row of `journalctl -o json`: `{"__REALTIME_TIMESTAMP":"1664989539869000","_HOSTNAME":"broker-1","MESSAGE":"<line>", ...}`.

A message that is not UTF-8 is a list of its bytes, a field with several values a list of them. A container's line over 16 KiB
is in parts (Docker, journald logging driver), and so is one over journald's LineMax=.
Source: systemd, Journal Export Formats and systemd.journal-fields(7).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.codec import foreign
from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "{"
ORDER = 12


def unwrap(record: Record) -> Record | None:
    """Return the line that the process printed, with the time at which the journal received it, and the name of the machine as
    the label `host`."""
    if '"MESSAGE"' not in record.text or '"__REALTIME_TIMESTAMP"' not in record.text:
        return None
    try:
        row = foreign(record.text)
        text = _message(row["MESSAGE"])
        stamp = dated(record, str(row["__REALTIME_TIMESTAMP"]), "epoch_ms")
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    host = row.get("_HOSTNAME")
    labels = {"host": host, **record.labels} if isinstance(host, str) and host else record.labels
    partial = row.get("CONTAINER_PARTIAL_MESSAGE") == "true" or row.get("_LINE_BREAK") == "line-max"
    return replace(record, text=text, labels=labels, partial=partial, **stamp)


def _message(value: Any) -> str:
    """Return a message as text. Raises TypeError or ValueError when it is no text."""
    if isinstance(value, str):
        return value
    if value and not isinstance(value[0], int):
        return "\n".join(map(_message, value))
    return bytes(value).decode("utf-8", "replace")
