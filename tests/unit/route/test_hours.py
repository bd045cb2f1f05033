"""Time intervals: in them or not by the clock of their zone, and when that changes next."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.routes import Hours, LabelMatcher, Route, TimeInterval, TimeSpan
from engine.route import hours_change_at, in_interval, mute_reason, muted_by_hours, route
from engine.route.hours import HORIZON

SEOUL = "Asia/Seoul"
NIGHT = TimeInterval("nights", (TimeSpan(((1320, 1440), (0, 360)), zone=SEOUL),))
WEEK = TimeInterval("weekdays", (TimeSpan(weekdays=((1, 5),)),))
NIGHTS = Hours((NIGHT,))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "inside", "outside"),
    [
        (TimeSpan(), ["2026-02-03T00:00"], []),
        (TimeSpan(((540, 1020),)), ["2026-02-03T09:00", "2026-02-03T16:59:59"], ["2026-02-03T08:59:59", "2026-02-03T17:00"]),
        (TimeSpan(((540, 1020),), zone=SEOUL), ["2026-02-03T00:00", "2026-02-03T07:59"], ["2026-02-03T08:00"]),
        (TimeSpan(weekdays=((0, 0), (6, 6))), ["2026-02-01T12:00", "2026-02-07T12:00"], ["2026-02-02T12:00"]),
        (TimeSpan(weekdays=((0, 0),), zone=SEOUL), ["2026-01-31T15:00"], ["2026-02-01T15:00"]),
        (TimeSpan(days=((-1, -1),)), ["2026-02-28T12:00", "2024-02-29T12:00"], ["2024-02-28T12:00", "2026-02-27T12:00"]),
        (TimeSpan(days=((29, 31),)), ["2026-03-31T12:00"], ["2026-02-28T12:00"]),
        (TimeSpan(days=((20, -1),)), ["2026-02-20T12:00", "2026-02-28T12:00"], ["2026-02-19T12:00"]),
        (TimeSpan(months=((12, 12),), years=((2026, 2026),)), ["2026-12-31T23:59"], ["2027-12-01T00:00", "2026-11-30T00:00"]),
    ],
)
def test_what_is_in_a_span(span: TimeSpan, inside: list[str], outside: list[str]) -> None:
    interval = TimeInterval("x", (span,))
    assert [in_interval(interval, utc(at)) for at in inside] == [True] * len(inside)
    assert [in_interval(interval, utc(at)) for at in outside] == [False] * len(outside)


def test_the_reason_says_until_when() -> None:
    at = utc("2026-02-03T14:00")  # 23:00 in Seoul
    assert mute_reason((NIGHTS,), at) == "muted by time interval nights until 2026-02-03 21:00:00 UTC"
    assert mute_reason((NIGHTS,), utc("2026-02-03T21:00")) == ""
    saturday = utc("2026-02-07T12:00")
    only = Hours(active=(WEEK,))
    assert mute_reason((only,), saturday) == "muted outside of time interval weekdays until 2026-02-09 00:00:00 UTC"


def test_a_mute_without_an_end_in_sight_names_none() -> None:
    whole_year = Hours((TimeInterval("freeze", (TimeSpan(years=((2026, 2026),)),)),))
    at = utc("2026-02-03T14:00")
    assert mute_reason((whole_year,), at) == "muted by time interval freeze"
    assert hours_change_at((whole_year,), at) == at + HORIZON


@pytest.mark.parametrize(
    ("minutes", "at", "change"),
    [
        ((90, 150), "2026-03-29T00:45", "2026-03-29T01:00"),  # 01:45 in Berlin; 02:00 is 03:00 that night
        ((150, 170), "2026-10-25T00:35", "2026-10-25T00:50"),  # 02:35, shown for the first time
        ((150, 170), "2026-10-25T01:35", "2026-10-25T01:50"),  # 02:35, shown again
    ],
)
def test_clocks_that_are_put_forward_and_back(minutes: tuple[int, int], at: str, change: str) -> None:
    hours = (Hours((TimeInterval("x", (TimeSpan((minutes,), zone="Europe/Berlin"),)),)),)
    assert muted_by_hours(hours, utc(at))
    assert hours_change_at(hours, utc(at)) == utc(change)


ZONES = st.sampled_from(["UTC", SEOUL, "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"])
TIMES = st.tuples(st.integers(0, 1439), st.integers(1, 1440)).filter(lambda pair: pair[0] < pair[1])


@given(times=TIMES, weekday=st.integers(0, 6), zone=ZONES, start=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1)))
def test_nothing_changes_before_the_next_change(times: tuple[int, int], weekday: int, zone: str, start: datetime) -> None:
    hours = (Hours((TimeInterval("x", (TimeSpan((times,), ((weekday, 6),), zone=zone),)),)),)
    now = start.replace(tzinfo=UTC)
    change = hours_change_at(hours, now)
    state = bool(muted_by_hours(hours, now))
    step = (change - now) / 200
    assert all(bool(muted_by_hours(hours, now + step * n)) is state for n in range(200))
    if change < now + HORIZON:
        assert bool(muted_by_hours(hours, change)) is not state
        assert bool(muted_by_hours(hours, change - timedelta(microseconds=1))) is state
        assert change.astimezone(ZoneInfo(zone)).second == 0


def test_one_route_that_tells_is_enough() -> None:
    critical = LabelMatcher("severity", "=", "critical")
    tree = Route(
        "ops", routes=(Route("ops", goes_on=True, hours=NIGHTS), Route("ops", (critical,)), Route("data", hours=NIGHTS))
    )
    told = {target.receiver: target.hours for target in route({"severity": "critical"}, tree)}
    assert told == {"ops": ()}
    told = {target.receiver: target.hours for target in route({"severity": "low"}, tree)}
    assert told == {"ops": (NIGHTS,), "data": (NIGHTS,)}
    assert muted_by_hours((NIGHTS, Hours((WEEK,))), utc("2026-02-07T14:00")) == "", "a Saturday night"
