"""Lines as logcli and Grafana's text download print them: Loki's stamp, the labels if they are shown, and the line.

    2022-10-05T17:05:39+09:00 {app="kafka"} [2022-10-05 17:05:39,869] ...     logcli
    2022-10-05T08:05:39.869Z<tab>[2022-10-05 17:05:39,869] ...                Grafana, since version 9
    1664989539869000000<tab>[2022-10-05 17:05:39,869] ...                     Grafana before

Many layouts begin with such a stamp and a blank. So without a tab or labels it counts as a wrapper only in front of a second
stamp. Rows come newest first, which does no harm, since each has its time.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from engine.model.records import Record
from engine.parse.stamps import dated

FIRST = "12"
ORDER = 28
_LABELS = r'\{[a-z_]\w*="[^{}]{0,2000}\} ?'
_PREFIX = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)|\d{19})"
    rf"(?:[\t ]+{_LABELS}|\t|[ \t]+(?=\[?\d{{4}}-\d\d-\d\d[ T]\d\d:))"
)


def unwrap(record: Record) -> Record | None:
    """Return the line behind the stamp, with the stamp as its time."""
    prefix = _PREFIX.match(record.text)
    if prefix is None:
        return None
    layout = "epoch_ms" if prefix[1].isdigit() else "iso"
    return replace(record, text=record.text[prefix.end() :], **dated(record, prefix[1], layout))
