"""Derive from the name of a file whether it is compressed, whether it was rotated, and which period it covers."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import PurePath
from zoneinfo import ZoneInfo

from msgspec import Struct

COMPRESSED = frozenset((".gz", ".zst"))

# server.log.2022-10-05-17 (log4j's DailyRollingFileAppender, logback), app.log-20221005 (logrotate's dateext),
# 0.log.20221005-173002 (the kubelet: the time of the rotation)
_PERIOD = re.compile(
    r"[.\-_](?P<year>(?:19|20)\d\d)-?(?P<month>[01]\d)-?(?P<day>[0-3]\d)"
    r"(?:[-_T]?(?P<hour>[0-2]\d)(?:[-_]?(?P<minute>[0-5]\d)(?P<second>[0-5]\d)?)?)?(?P<index>\.\d{1,3})?$"
)
_INDEX = re.compile(r"\.\d{1,3}$")  # server.log.1


class Rotation(Struct, frozen=True):
    """`closed`: no more lines are added to the file. `covers_until`: the end of the period in its name; None without one."""

    closed: bool
    covers_until: datetime | None = None


def is_compressed(path: str) -> bool:
    """Return whether `path` has the suffix of a compressed file that can be read."""
    return PurePath(path).suffix in COMPRESSED


def is_rotated(path: str) -> bool:
    """Return whether `path` is the name of a file that gets no more lines: it was rotated or compressed."""
    return rotation(path, ZoneInfo("UTC")).closed


def rotation(path: str, zone: ZoneInfo) -> Rotation:
    """Return the rotation according to the name of `path`; a period in it is local time of `zone`.

    A file with an index behind the period (`app.log.2022-10-05.1`) was also cut by size, so it has no known end.
    """
    name = PurePath(path).name
    compressed = is_compressed(path)
    if compressed:
        name = name.rpartition(".")[0]
    if (period := _PERIOD.search(name)) is None:
        return Rotation(closed=compressed or bool(_INDEX.search(name)))
    return Rotation(closed=True, covers_until=None if period["index"] else _end_of(period, zone))


def _end_of(period: re.Match[str], zone: ZoneInfo) -> datetime | None:
    lengths = {"second": timedelta(), "minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
    length = next(length for unit, length in lengths.items() if period[unit])
    date = (int(period["year"]), int(period["month"]), int(period["day"]))
    time = (int(period["hour"] or 0), int(period["minute"] or 0), int(period["second"] or 0))
    try:
        return (datetime(*date, *time) + length).replace(tzinfo=zone)
    except (ValueError, OverflowError):  # 2022-19-39: digits, not a date
        return None
