"""How times, spans and labels are written for readers, the same in a terminal, in Slack and in a mail."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta


def moment(at: datetime) -> str:
    """Return a time to the second, in UTC, saying so."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def lasting(span: timedelta) -> str:
    """Return a span in its two largest units: `42 s`, `25 min`, `2 h 4 min`, `3 d 2 h`."""
    seconds = int(span.total_seconds())
    for size, unit, next_size, next_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // next_size
            return f"{seconds // size} {unit} {rest} {next_unit}" if rest else f"{seconds // size} {unit}"
    return f"{seconds} s"


def named(labels: Mapping[str, str]) -> str:
    """Return labels as `broker=1 topic=a`, without the cluster when it is the only one there is."""
    return " ".join(f"{k}={v}" for k, v in labels.items() if (k, v) != ("cluster", "default"))
