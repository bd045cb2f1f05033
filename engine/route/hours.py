"""Time intervals of routes: when a receiver is muted, and when that changes. Alertmanager's semantics."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from engine.model.phrases import moment
from engine.model.routes import Hours, Ranges, TimeInterval, TimeSpan

HORIZON = timedelta(days=8)  # how far ahead the next change is searched
_HALF_HOUR = timedelta(minutes=30)
_DAY = timedelta(days=1)


def in_interval(interval: TimeInterval, at: datetime) -> bool:
    """Return whether `at` (aware) is in one of the interval's spans."""
    return any(_in_span(span, at.astimezone(ZoneInfo(span.zone))) for span in interval.spans)


def muted_by_hours(hours: tuple[Hours, ...], at: datetime) -> str:
    """Return what mutes a receiver at `at`, in words; empty when one of the routes that lead to it is not muted."""
    reasons = [_muted(route_hours, at) for route_hours in hours]
    return reasons[0] if reasons and all(reasons) else ""


@lru_cache(maxsize=256)  # many incidents ask for the same routes at the same time
def hours_change_at(hours: tuple[Hours, ...], now: datetime) -> datetime:
    """Return when the receiver next becomes muted or unmuted; `now` + HORIZON when that is not earlier."""
    is_muted = bool(muted_by_hours(hours, now))
    end = now + HORIZON
    return next((at for at in _moments(hours, now, end) if bool(muted_by_hours(hours, at)) is not is_muted), end)


def mute_reason(hours: tuple[Hours, ...], now: datetime) -> str:
    """Return why and until when a receiver is muted now, in words; empty when it is not."""
    reason, at = muted_by_hours(hours, now), hours_change_at(hours, now)
    return f"{reason} until {moment(at)}" if reason and not muted_by_hours(hours, at) else reason


def _muted(hours: Hours, at: datetime) -> str:
    interval_name = next((interval.name for interval in hours.mute if in_interval(interval, at)), "")
    if interval_name:
        return f"muted by time interval {interval_name}"
    if hours.active and not any(in_interval(interval, at) for interval in hours.active):
        return f"muted outside of time interval {', '.join(interval.name for interval in hours.active)}"
    return ""


def _in_span(span: TimeSpan, local: datetime) -> bool:
    minute, length = local.hour * 60 + local.minute, monthrange(local.year, local.month)[1]
    days = tuple((_day(first, length), min(_day(last, length), length)) for first, last in span.days)
    return (
        (not span.times or any(start <= minute < end for start, end in span.times))
        and _within(span.weekdays, local.isoweekday() % 7)
        and _within(days, local.day)
        and _within(span.months, local.month)
        and _within(span.years, local.year)
    )


def _day(day: int, length: int) -> int:
    return length + day + 1 if day < 0 else day


def _within(ranges: Ranges, value: int) -> bool:
    return not ranges or any(first <= value <= last for first, last in ranges)


def _moments(hours: tuple[Hours, ...], start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield, in order, every moment after `start` and before `end` at which the muting can change.

    These are the begins and ends of spans, and every half hour of UTC, which covers changes of daylight saving time and
    midnights.
    """
    spans = [span for route_hours in hours for interval in (*route_hours.mute, *route_hours.active) for span in interval.spans]
    day = start.astimezone(UTC).date() - _DAY
    while day <= end.date():
        moments = {at for span in spans for at in _edges(span, day)}
        midnight = datetime.combine(day, time(), UTC)
        moments |= {midnight + n * _HALF_HOUR for n in range(48)}
        yield from sorted(at for at in moments if start < at < end and midnight <= at < midnight + _DAY)
        day += _DAY


def _edges(span: TimeSpan, utc_day: date) -> Iterator[datetime]:
    """Yield the begins and ends of the span's times on `utc_day` and the days beside it; a local time that occurs twice, when
    clocks are put back, is two."""
    for day in (utc_day - _DAY, utc_day, utc_day + _DAY):
        for minute in {edge % 1440 for times in span.times for edge in times}:
            for fold in (0, 1):
                local = datetime.combine(day, time(minute // 60, minute % 60, fold=fold), ZoneInfo(span.zone))
                yield local.astimezone(UTC)
