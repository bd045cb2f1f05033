"""The `time_intervals` of tocsin.yml: schema and conversion to TimeInterval. Keys and values are those of Alertmanager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, model_validator

from engine.config.faults import finding_error, validated_by
from engine.dsl.codes import Code
from engine.dsl.schema import Strict, Text
from engine.model.routes import TimeInterval, TimeSpan

_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
MinuteRange = tuple[int, int]


def _range(parse_number: Callable[[str], int], expected: str) -> BeforeValidator:
    """Return a validator of `FIRST:LAST`, or one value for both, whose ends `parse_number` reads."""

    def parse(value: Any) -> MinuteRange:
        try:
            first, colon, last = value.partition(":")
            range_ = parse_number(first.strip()), parse_number((last if colon else first).strip())
        except (ValueError, AttributeError):
            raise finding_error(Code.BAD_HOURS, f"`{value}` is not {expected}") from None
        if range_[0] > range_[1] and not range_[0] > 0 > range_[1]:  # 20:-1 is the 20th to the last of the month
            raise finding_error(
                Code.BAD_HOURS, f"`{value}` ends before it begins", "write two ranges when one goes past the end"
            )
        if range_[0] < 0 < range_[1]:
            raise finding_error(
                Code.BAD_HOURS, f"`{value}` begins at the end of the month and ends at its start", "write two ranges"
            )
        return range_

    return BeforeValidator(parse, json_schema_input_type=str)


def _weekday(text: str) -> int:
    return _WEEKDAYS.index(text.lower())


def _day(text: str) -> int:
    if not 1 <= abs(int(text)) <= 31:
        raise ValueError(text)
    return int(text)


def _month(text: str) -> int:
    number = _MONTHS.index(text.lower()) + 1 if not text.isdecimal() else int(text)
    if not 1 <= number <= 12:
        raise ValueError(text)
    return number


def _minute(value: Any) -> int:
    """Return the minute of the day for `HH:MM`; 24:00 is the end of the day."""
    hours, colon, minutes = value.partition(":") if isinstance(value, str) else ("", "", "")
    digits = colon and len(hours) == len(minutes) == 2 and (hours + minutes).isascii() and (hours + minutes).isdecimal()
    if not digits or int(minutes) > 59 or int(hours) * 60 + int(minutes) > 1440:
        raise finding_error(
            Code.BAD_HOURS, f"`{value}` is not a time of the day", 'for example: "09:30", in quotes; the end is "24:00"'
        )
    return int(hours) * 60 + int(minutes)


Minute = Annotated[
    int, BeforeValidator(_minute, json_schema_input_type=Annotated[str, Field(pattern="^[0-2][0-9]:[0-5][0-9]$")])
]
Weekdays = Annotated[MinuteRange, _range(_weekday, "a day of the week, or two as in monday:friday")]
Days = Annotated[MinuteRange, _range(_day, "a day of the month, or two as in 1:5 or -3:-1")]
Months = Annotated[MinuteRange, _range(_month, "a month, or two as in january:march or 1:3")]
Years = Annotated[MinuteRange, _range(int, "a year, or two as in 2026:2027")]
Zone = Annotated[str, validated_by(ZoneInfo, Code.BAD_TIMEZONE, "a time zone", "for example: Asia/Seoul, Europe/Berlin, UTC")]


class TimesEntry(Strict):
    """a part of a day: start_time and end_time"""

    start_time: Minute
    end_time: Minute

    @model_validator(mode="after")
    def _ends_later(self) -> TimesEntry:
        if self.end_time <= self.start_time:
            raise finding_error(
                Code.BAD_HOURS, "ends before it begins", "a night is two parts: 22:00 to 24:00 and 00:00 to 06:00"
            )
        return self


class SpanEntry(Strict):
    """a span of times, weekdays, days_of_month, months and years, all of which must hold"""

    times: list[TimesEntry] = Field(default=[])
    weekdays: list[Weekdays] = Field(default=[])
    days_of_month: list[Days] = Field(default=[])
    months: list[Months] = Field(default=[])
    years: list[Years] = Field(default=[])
    location: Zone = "UTC"


class IntervalEntry(Strict):
    """a named set of times"""

    name: Text
    time_intervals: list[SpanEntry] = Field(min_length=1)


def interval_of(entry: IntervalEntry) -> TimeInterval:
    """Return the time interval of `entry`."""
    return TimeInterval(entry.name, tuple(_span(span) for span in entry.time_intervals))


def _span(entry: SpanEntry) -> TimeSpan:
    times = tuple((part.start_time, part.end_time) for part in entry.times)
    days = tuple(entry.days_of_month)
    return TimeSpan(times, tuple(entry.weekdays), days, tuple(entry.months), tuple(entry.years), entry.location)
