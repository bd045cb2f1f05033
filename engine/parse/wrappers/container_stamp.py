"""The stamp that `docker logs -t` and container runtimes put before each line, always with nine digits after the second.

Docker: `2025-02-20T09:47:42.251096468Z <line>`; CRI log files: `2025-02-20T09:47:42.251096468Z stdout F <line>`, where P in
place of F means that the next row continues the line. Source: Kubernetes, CRI logging design.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "12"
ORDER = 20
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d))(?: (?:stdout|stderr) ([FP]))?(?: |$)")


def unwrap(record: Record) -> Record | None:
    """Return the line behind the stamp, with the stamp as its time."""
    prefix = _STAMP.match(record.text)
    if prefix is None:
        return None
    return replace(record, text=record.text[prefix.end() :], partial=prefix[2] == "P", **dated(record, prefix[1], "iso"))
