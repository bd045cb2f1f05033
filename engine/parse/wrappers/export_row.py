"""A row of a viewer's CSV export: a column of the time, other columns, the line in quotes. Each row starts an event.

    "Apr 14, 2022 @ 03:14:15.332",broker-1,"[2022-04-14 03:14:15,332] ERROR ..."      Kibana, Discover
    "{""app"":""kafka""}",2022-10-05 17:05:39.869,"[2022-10-05 17:05:39,869] ...",... Grafana, Loki

The line is the longest column behind the time. A stamp with three digits behind the comma is no row: those are milliseconds.
A quoted line with line ends in it continues in the next records, up to a quote.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = '"{12'
ORDER = 22
_STAMP = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d{13}(?:\d{6})?"
_KIBANA = r"[A-Z][a-z]{2} \d{1,2}, \d{4} @ \d\d:\d\d:\d\d\.\d{3}"
_ROW = re.compile(
    rf'"({_KIBANA})",|(?:"\{{.{{0,4000}}\}}"|\{{[^{{}}\s]{{0,4000}}\}}),"?({_STAMP})"?,|"?({_STAMP})"?,(?!\d{{3}}\s)(?=.{{0,1000}}")'
)


def unwrap(record: Record) -> Record | None:
    """Return the line in the row, with the row's time."""
    row = _ROW.match(record.text)
    if row is None:
        return None
    stamp = row[1] or row[2] or row[3]
    layout = "kibana" if row[1] else "epoch_ms" if stamp.isdigit() else "iso"
    line = max(_columns(record.text[row.end() :]), key=len, default="")
    return replace(record, text=line, starts=True, **dated(record, stamp, layout))


def _columns(text: str) -> Iterator[str]:
    """Yield the columns of a row; of a last, quoted one that ends in a later record, the part that is on this line."""
    try:
        yield from next(csv.reader([text]), ())
    except csv.Error:
        yield text
