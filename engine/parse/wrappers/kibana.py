"""Rows copied out of Kibana's Discover: `Apr 14, 2022 @ 03:14:15.000 <line>`. Each row is a document, so it starts an event.

The stamp is in the viewer's zone and usually precise to the second only; a stamp in the line itself is better. Rows come newest
first, which does no harm: no later stage depends on the order of lines with stamps.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "ADFJMNOS"
ORDER = 20
_ROW = re.compile(r"([A-Z][a-z]{2} \d{1,2}, \d{4} @ \d\d:\d\d:\d\d\.\d{3})(?:\s+|$)")


def unwrap(record: Record) -> Record | None:
    """Return the row's message, with the row's stamp as its time."""
    row = _ROW.match(record.text)
    if row is None:
        return None
    return replace(record, text=record.text[row.end() :], starts=True, **dated(record, row[1], "kibana"))
