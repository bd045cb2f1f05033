"""Marks around pasted lines: the `> ` of a quotation, the dash of a list, an unclosed bold, backticks, the sides of a frame,
the bar of a column, the quotes of a spreadsheet."""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record

FIRST = '>-*`│" '
ORDER = 5
_DAY = r"\[?\d{4}-\d\d-\d\d"
_CLOCK_AND_LEVEL = r"[ T]\d\d:\d\d:\d\d[\d.,Z+:-]{0,16}\]? [^\"\n]{0,60}\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b"
_MARK = re.compile(
    r"(?:> ?){1,8}"
    rf"|(?:[-*] |\*\*)(?={_DAY})"
    rf"|[ ]{{1,4}}\| (?={_DAY}[ T]\d\d:\d\d:\d\d[\d.,Z+:-]{{0,16}}\]? [^|\s])"
    r"|(?P<frame>│ ?)"
    rf"|(?P<code>`{{1,3}})(?={_DAY}|\{{\"|[^\s`][^`]{{24}})"
    rf"|(?P<cell>\")(?={_DAY}{_CLOCK_AND_LEVEL})"
)


def unwrap(record: Record) -> Record | None:
    """Return the line without the marks; its indentation stays."""
    mark = _MARK.match(record.text)
    if mark is None:
        return None
    text = record.text[mark.end() :]
    if mark.lastgroup == "frame":
        text = text.rstrip("│ ")  # the padding inside the frame is not text
    elif mark.lastgroup == "code":
        text = text.rstrip("`")
    elif mark.lastgroup == "cell":
        text = text.removesuffix('"').replace('""', '"')
    return replace(record, text=text)
