"""Parses the stamps of log lines into aware UTC datetimes. Layouts have the names of the `time` key of rules/formats/*.yml:

    iso         2022-10-05 17:05:39,869   T, blank or underscore between; up to 9 digits after , . or _; Z or an offset, if any
    kibana      Apr 14, 2022 @ 03:14:15.000
    epoch_ms    1664956976908, or seconds with a decimal point (1593460123.747), or micro- or nanoseconds (16 or 19 digits)
    short_year  22/10/05 17:05:39
    day_first   05-10-2022 17:05:39.869, or the month by name (05/Oct/2022), then also with a short year (05-Oct-22)
    month_day   1005 17:05:39.869993, or Oct  5 17:05:39   without a year: that of the latest such day that is not ahead
    month_first 10/5/22 17:05:39:869, or with a long year; a comma may follow it
    twelve_hour 10/5/2022, 5:05:39.869 PM   the month first, or by name (Oct 5, 2022 5:05:39 PM; Oct 5, 5:05:39 PM)

A stamp without an offset is read in the zone of its source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MILLIS = re.compile(r"\d[.,_]\d{3}|\d{13}")
_MONTH_DAY = re.compile(r"(?:(\d\d)-?(\d\d)|([A-Z][a-z]{2}) {1,2}(\d{1,2})) (\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)")
_MONTH_FIRST = re.compile(r"(\d{1,2})/(\d{1,2})/(?:20)?(\d\d),? (\d{1,2})(:\d\d:\d\d)(?:[.,:](\d{1,9}))?")
_DAY_FIRST = re.compile(r"(\d\d)[-./ ](?:(\d\d|[A-Z][a-z]{2})[-./ ](\d{4})|([A-Z][a-z]{2})[- ](\d\d))[ :](.+)")
_TWELVE_HOUR = re.compile(
    r"(?:(?P<name>[A-Z][a-z]{2}) |(?P<month>\d{1,2})/)(?P<day>\d{1,2})(?:[,/] ?(?P<year>\d{4}))?,? "
    r"(?P<hour>\d{1,2})(?P<rest>:\d\d:\d\d(?:[.,]\d{1,9})?)\s?(?P<half>[AP])M"
)
# the form that Python's own parser reads: without a leap second
_STANDARD = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]+(Z)|[.,][0-9]{3})")
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$|^[\d.]+$")  # or a number since 1970, which has no zone
_UNITS = {16: 10**6, 19: 10**9}  # units in a second, by the number of digits: micro- and nanoseconds
_AHEAD = timedelta(days=1)  # an unknown zone or a clock that is not set must not make a stamp last year's
_YEARS_BACK = 8  # 29 February comes again within eight years
_NOON = 12
_SECONDS_END = 19  # length of 2022-10-05 17:05:39


def parse_stamp(text: str, layout: str, zone: tzinfo = UTC, reference: datetime | None = None) -> datetime | None:
    """Return the time of a stamp, in UTC; None when `text` is not a time in `layout`.

    Args:
        zone: of the source; a stamp without an offset is read in it.
        reference: about when the line was written: it gives its year to a stamp without one. Without a reference such a stamp
            is not a time.
    """
    try:
        if layout in _MAYBE_WITHOUT_YEAR:
            return _MAYBE_WITHOUT_YEAR[layout](text, zone, reference)
        return _LAYOUTS[layout](text, zone)
    except (ValueError, KeyError, OverflowError, OSError):
        return None


def names_offset(text: str, layout: str) -> bool:
    """Return whether a stamp is the same moment in every zone: it has an offset, or counts from 1970."""
    return layout == "epoch_ms" or (layout == "iso" and not {"Z", "+", "-"}.isdisjoint(text[_SECONDS_END:]))


def has_millis(text: str) -> bool:
    """Return whether a stamp of any layout is precise to the millisecond, so that it can tell two equal lines apart."""
    return _MILLIS.search(text) is not None


def is_repeated(text: str, at: datetime, zone: tzinfo) -> bool:
    """Return whether `zone` had the time `at` twice since its clocks were put back. A stamp with an offset is never
    ambiguous."""
    return zone is not UTC and _OFFSET.search(text) is None and _is_twice(at.replace(second=0, microsecond=0), zone)


@lru_cache(maxsize=4096)
def _is_twice(minute: datetime, zone: tzinfo) -> bool:
    local = minute.astimezone(zone)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Return the zone of an IANA name; UTC for an empty name or one that does not exist."""
    try:
        return ZoneInfo(name) if name not in ("", "UTC") else UTC
    except (ValueError, OSError, KeyError):
        return UTC


def _iso(text: str, zone: tzinfo) -> datetime:
    standard = _STANDARD.fullmatch(text)
    if standard is not None and (standard[1] or zone is UTC):
        return datetime.fromisoformat(text if standard[1] else f"{text}+00:00")
    micros, offset_at = _fraction(text)
    offset = text[offset_at:].strip()
    minute = _minute(text[:16], zone if not offset else UTC)
    at = minute + timedelta(seconds=_second(text), microseconds=micros)
    return at - _offset(offset) if offset else at


@lru_cache(maxsize=4096)
def _minute(text: str, zone: tzinfo) -> datetime:
    """Return the start of a minute, `2022-10-05 17:05`, in UTC. Cached, since most lines share it with the line before."""
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    return datetime(year, month, day, int(text[11:13]), int(text[14:16]), tzinfo=zone).astimezone(UTC)


def _second(text: str) -> int:
    second = int(text[17:_SECONDS_END])
    if second > 60:  # 60 is a leap second
        raise ValueError(text)
    return second


def _fraction(text: str) -> tuple[int, int]:
    """Return the microseconds of an iso stamp, and the index of its offset."""
    if text[_SECONDS_END : _SECONDS_END + 1] not in (",", ".", "_"):
        return 0, _SECONDS_END
    rest = text[_SECONDS_END + 1 :]
    digits = len(rest) - len(rest.lstrip("0123456789"))
    return int(rest[: min(digits, 6)].ljust(6, "0")), _SECONDS_END + 1 + digits


def _offset(text: str) -> timedelta:
    if text == "Z":
        return timedelta(0)
    digits = text[1:].replace(":", "")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4] or 0))
    return -size if text[0] == "-" else size


def _kibana(text: str, zone: tzinfo) -> datetime:
    date, _, clock = text.partition(" @ ")
    month, day, year = date.replace(",", "").split()
    return _iso(f"{year}-{_month(month)}-{int(day):02} {clock}", zone)


def _month(name: str) -> str:
    """Return the number of a month as two digits, from its English name of three letters."""
    return f"{_MONTHS.index(name) // 3 + 1:02}"


def _epoch(text: str, _zone: tzinfo) -> datetime:
    if "." in text:
        return datetime.fromtimestamp(float(text), UTC)
    return datetime.fromtimestamp(int(text) / _UNITS.get(len(text), 1000), UTC)


def _short_year(text: str, zone: tzinfo) -> datetime:
    return _iso(f"20{text}", zone)


def _day_first(text: str, zone: tzinfo) -> datetime:
    parts = _DAY_FIRST.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    day, clock = parts[1], parts[6]
    month, year = (parts[2], parts[3]) if parts[2] else (parts[4], f"20{parts[5]}")
    return _iso(f"{year}-{month if month.isdigit() else _month(month)}-{day} {clock}", zone)


def _month_first(text: str, zone: tzinfo) -> datetime:
    parts = _MONTH_FIRST.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    month, day, year, hour, rest, fraction = parts.groups()
    return _iso(f"20{year}-{int(month):02}-{int(day):02} {int(hour):02}{rest}.{fraction or 0}", zone)


def _without_year(text: str, zone: tzinfo, reference: datetime | None) -> datetime | None:
    parts = _MONTH_DAY.fullmatch(text)
    if parts is None or reference is None:
        return None
    month, day = (parts[1], int(parts[2])) if parts[1] else (_month(parts[3]), int(parts[4]))
    latest = (reference + _AHEAD).astimezone(zone).year
    for year in range(latest, latest - _YEARS_BACK - 1, -1):
        at = parse_stamp(f"{year}-{month}-{day:02} {parts[5]}", "iso", zone)
        if at is not None and at <= reference + _AHEAD:
            return at
    return None


def _twelve_hour(text: str, zone: tzinfo, reference: datetime | None) -> datetime | None:
    parts = _TWELVE_HOUR.fullmatch(text)
    if parts is None or not 1 <= int(parts["hour"]) <= _NOON:
        return None
    month, day = _month(parts["name"]) if parts["name"] else parts["month"].rjust(2, "0"), parts["day"].rjust(2, "0")
    clock = f"{int(parts['hour']) % _NOON + (_NOON if parts['half'] == 'P' else 0):02}{parts['rest']}"
    if parts["year"]:
        return _iso(f"{parts['year']}-{month}-{day} {clock}", zone)
    return _without_year(f"{month}{day} {clock}", zone, reference)


_MAYBE_WITHOUT_YEAR: Mapping[str, Callable[[str, tzinfo, datetime | None], datetime | None]] = {
    "month_day": _without_year,
    "twelve_hour": _twelve_hour,
}
_LAYOUTS: Mapping[str, Callable[[str, tzinfo], datetime]] = {
    "iso": _iso,
    "kibana": _kibana,
    "epoch_ms": _epoch,
    "short_year": _short_year,
    "day_first": _day_first,
    "month_first": _month_first,
}
