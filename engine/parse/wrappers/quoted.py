"""Marks around pasted lines: `> ` of a quotation, the dash of a list, backticks before what is long; a spreadsheet's quotes."""

from __future__ import annotations

import re

from engine.model.records import Record

FIRST = '>-*`"'
ORDER = 5
_CELL = r'"(?=\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[\d.,Z+:-]{0,16}\]? [^"\n]{0,60}\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b)'
_MARK = re.compile(
    rf"(?:> ?){{1,8}}|[-*] (?=\[?\d{{4}}-\d\d-\d\d)|`{{1,3}}(?=\[?\d{{4}}-\d\d-\d\d|\{{\"|[^\s`][^`]{{24}})|{_CELL}"
)


def unwrap(record: Record) -> Record | None:
    """Return the line without the marks; its own indentation stays."""
    found = _MARK.match(record.text)
    if found is None:
        return None
    text = record.text[found.end() :]
    if found[0].startswith('"'):
        text = text.removesuffix('"').replace('""', '"')
    return record._replace(text=text.rstrip("`") if found[0].startswith("`") else text)
