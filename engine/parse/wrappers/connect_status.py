"""A Kafka Connect REST status on one line, or the first line of one that an alert has unescaped.

The document starts an event wherever it stands, also right below a log line (the output of curl in a pasted terminal). Its text
is left as it is: engine/parse/status.py reads it once it is complete. Source: Connect REST API, GET /connectors/{name}/status.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "{"
ORDER = 60
_STATUS = re.compile(
    r"""\{\s*"(?:name"\s*:\s*"[^"]{1,255}"\s*,\s*"connector"\s*:\s*\{|(?:id"\s*:\s*\d{1,6}\s*,\s*")?state"\s*:\s*"[A-Z_]{1,30}"\s*,\s*"(?:trace|worker_id)"\s*:)"""
)


def unwrap(record: Record) -> Record | None:
    """Return the record marked as the start of an event; None when it is marked already."""
    if record.starts or _STATUS.match(record.text) is None:
        return None
    return replace(record, starts=True)
