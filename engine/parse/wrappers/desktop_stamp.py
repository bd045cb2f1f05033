"""The stamp that Docker Desktop and some panels show before each line: `2024-12-30 23:29:07 <line>`.

It is in the viewer's zone and to the second, so a line's own stamp is better. Many layouts begin with just such a stamp, so
only a line that goes on with a stamp of its own, or with a piece of a stack trace, is taken to be wrapped.
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
    """Return the line behind the stamp; the stamp is its time if it has none of its own."""
    found = _STAMP.match(record.text)
    if found is None:
        return None
    return replace(record, text=record.text[found.end() :], **dated(record, found[1], "iso"))
