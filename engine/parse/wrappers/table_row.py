"""A row of a table with two columns, time and message, as copied out of the log services of clouds.

    9/20/2022, 5:28:03.265 AM | %7\\|1663651683.264\\|FETCH\\|rdkafka#consumer-1\\| [thrd:...      Azure Log Analytics
    | 1731064812979 | START RequestId: 28023b61-98bd-4f9f-8616-515b0da1f31d Version: $LATEST |   CloudWatch
    | 2024-11-08 11:20:12.979 | ... |                                                            CloudWatch Logs Insights

The message is a line like any other; the row's time counts where it has none of its own.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "|123456789"
ORDER = 21
_ISO = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?Z?"
_MARKED = rf"\|\s{{0,9}}(?:(?P<iso>{_ISO})|(?P<epoch_ms>\d{{13}}))\s{{1,9}}\| (?P<marked>[^\n]*)"
_BARE = r"(?P<twelve_hour>\d{1,2}/\d{1,2}/\d{4}, \d{1,2}:\d\d:\d\d(?:\.\d{1,9})? [AP]M) \| (?P<bare>[^\n]*)"
_ROW = re.compile(f"{_MARKED}|{_BARE}")


def unwrap(record: Record) -> Record | None:
    """Return the message of the row, with the row's time."""
    row = _ROW.match(record.text)
    if row is None:
        return None
    stamp = next(name for name in ("iso", "epoch_ms", "twelve_hour") if row[name])
    text = row["bare"] or (row["marked"] or "").rstrip().removesuffix("|").rstrip()
    return replace(record, text=text.replace("\\|", "|"), **dated(record, row[stamp], stamp))
