r"""Docker's json-file logging driver: `{"log":"<line>\n","stream":"stdout","time":"2025-02-17T09:35:27.681757986Z"}`.

A row whose `log` has no line end is a part of a line longer than 16 KiB; the next row continues it.
Source: moby daemon/logger/jsonfilelog, and loggerutils for the 16 KiB.
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.codec import foreign
from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "{"
ORDER = 10
_KEYS, _OTHER_KEYS = {"log", "time"}, {"stream", "attrs"}  # a document with any other is a shipper's


def unwrap(record: Record) -> Record | None:
    """Return the line that the container printed, with the time at which Docker received it."""
    if '"log"' not in record.text:
        return None
    try:
        row = foreign(record.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not _KEYS <= row.keys() <= _KEYS | _OTHER_KEYS or not isinstance(row["log"], str):
        return None
    line = row["log"]
    stamp = dated(record, str(row["time"]), "iso")
    return replace(record, text=line.rstrip("\r\n"), partial=not line.endswith("\n"), **stamp)
