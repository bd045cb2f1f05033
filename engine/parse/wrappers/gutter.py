"""Line numbers that an editor, a viewer or `grep -n` put before each line: `1461[2020-09-28 12:59:15,976] ERROR ...`.

Many lines begin with a number, so it counts as a line number only in front of a stamp or a part of a stack trace.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = "123456789"
ORDER = 15
_NUMBER = re.compile(
    r"\d{1,7}(?:[:|\t-] ?)?"
    r"(?=\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:|(?<=\D)\d{4}-\d\d-\d\d[ T]\d\d:\d\d:|\s+at [\w.$/]{1,200}[(.]|Caused by: "
    r"|(?:[a-z_]\w{0,60}\.){2,8}\w{1,120}(?:Exception|Error)\b)"
)


def unwrap(record: Record) -> Record | None:
    """Return the line behind the number."""
    number = _NUMBER.match(record.text)
    return None if number is None else replace(record, text=record.text[number.end() :])
