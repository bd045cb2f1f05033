"""The name that what runs several programs at once (concurrently, pm2) sets in brackets before each line, where a JSON object
follows: `[0] {"level":"ERROR",...}`. Before other text a bracket is more likely a part of it.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "["
ORDER = 45
_PREFIX = re.compile(r"\[[\w:.-]{1,20}\] (?=\{\")")


def unwrap(record: Record) -> Record | None:
    """Return the object without the name."""
    found = _PREFIX.match(record.text)
    return None if found is None else replace(record, text=record.text[found.end() :].rstrip("`"))
