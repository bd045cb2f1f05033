"""The stamp that Docker Desktop and some panels show before each line: `2024-12-30 23:29:07 <line>`.

It is in the viewer's zone and precise to the second only, so a line's own stamp is better. Many layouts begin with just such a
stamp. So it counts as a wrapper only in front of a second stamp or a part of a stack trace.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "12"
ORDER = 30
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) "
    r"(?=\[?\d{4}-\d\d-\d\d[ T]\d\d:|\s+at |Caused by: |(?:[a-z_]\w*\.){2,8}\w{1,120}(?:\$\w{1,120})?(?:Exception|Error)\b)"
)


def unwrap(record: Record) -> Record | None:
    """Return the line behind the stamp, with the stamp as its time unless it has one of its own."""
    prefix = _STAMP.match(record.text)
    if prefix is None:
        return None
    return replace(record, text=record.text[prefix.end() :], **dated(record, prefix[1], "iso"))
