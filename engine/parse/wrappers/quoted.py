"""Marks around pasted lines: `> ` of a quotation, the dash of a list, an open bold, backticks, a frame's sides."""

from __future__ import annotations

import re

from engine.model.records import Record

FIRST = ">-*`│"
ORDER = 5
_MARK = re.compile(r"(?:> ?){1,8}|(?:[-*] |\*\*)(?=\[?\d{4}-\d\d-\d\d)|│ ?|`{1,3}(?=\[?\d{4}-\d\d-\d\d|\{\"|[^\s`][^`]{24})")


def unwrap(record: Record) -> Record | None:
    """Return the line without the marks; its own indentation stays."""
    found = _MARK.match(record.text)
    if found is None:
        return None
    text = record.text[found.end() :]
    side = {"`": "`", "│": "│ "}.get(found[0][0])  # what a frame is filled up with is no text
    return record._replace(text=text if side is None else text.rstrip(side))
