"""The program's name in brackets that runners of several programs (concurrently, pm2) put before each line:
`[0] {"level":"ERROR",...}`. It counts as a wrapper only in front of a JSON object; before other text, brackets are more likely
a part of it.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "["
ORDER = 45
_PREFIX = re.compile(r"\[[\w:.-]{1,20}\] (?=\{\")")


def unwrap(record: Record) -> Record | None:
    """Return the object without the name in front of it."""
    prefix = _PREFIX.match(record.text)
    return None if prefix is None else replace(record, text=record.text[prefix.end() :].rstrip("`"))
