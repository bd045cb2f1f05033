"""Texts of times, durations and labels, the same in a terminal, in Slack and on the pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta


def moment(at: datetime) -> str:
    """Return a time to the second with the name of its zone, as `2022-10-05 12:00:00 UTC`."""
    return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname() or 'UTC'}"


def lasting(span: timedelta) -> str:
    """Return a duration in its two largest units: `42 s`, `25 min`, `2 h 4 min`, `3 d 2 h`."""
    return " ".join(f"{number} {unit}" for number, unit in lasting_parts(span))


def lasting_parts(span: timedelta) -> tuple[tuple[int, str], ...]:
    """Return the numbers and units of a duration: the largest unit of `d`, `h`, `min` and `s`, and the next where it is not
    0."""
    seconds = int(span.total_seconds())
    for size, unit, next_size, next_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // next_size
            return ((seconds // size, unit), (rest, next_unit)) if rest else ((seconds // size, unit),)
    return ((seconds, "s"),)


def named(labels: Mapping[str, str]) -> str:
    """Return labels as `broker=1 topic=a`, without the default cluster."""
    return " ".join(f"{k}={v}" for k, v in labels.items() if (k, v) != ("cluster", "default"))
