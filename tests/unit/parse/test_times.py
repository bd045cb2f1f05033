"""Stamps: every layout to aware UTC, never an exception."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.parse.times import has_millis, parse_stamp, zone_of

SEOUL = zone_of("Asia/Seoul")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2022-10-05 17:05:39,869", utc(2022, 10, 5, 17, 5, 39, 869000)),
        ("2022-10-05T17:05:39.869", utc(2022, 10, 5, 17, 5, 39, 869000)),
        ("2022-10-05 17:05:39", utc(2022, 10, 5, 17, 5, 39)),
        ("2022-10-05T17:05:39Z", utc(2022, 10, 5, 17, 5, 39)),
        ("2022-10-05T17:05:39.869+09:00", utc(2022, 10, 5, 8, 5, 39, 869000)),
        ("2020-03-13T13:06:33.070+0000", utc(2020, 3, 13, 13, 6, 33, 70000)),
        ("2022-10-05 17:05:39 -0330", utc(2022, 10, 5, 20, 35, 39)),
        ("2025-02-20T09:47:42.251096468Z", utc(2025, 2, 20, 9, 47, 42, 251096)),
        ("2022-04-13_09-40-46_626", utc(2022, 4, 13, 9, 40, 46, 626000)),
        ("2021/01/02 15:04:05", utc(2021, 1, 2, 15, 4, 5)),
        ("2016-12-31 23:59:60", utc(2017, 1, 1, 0, 0, 0)),
    ],
)
def test_iso_stamps(text: str, expected: datetime) -> None:
    assert parse_stamp(text, "iso") == expected


def test_a_zoneless_stamp_is_read_in_the_zone_of_its_source() -> None:
    assert parse_stamp("2022-10-05 17:05:39,869", "iso", SEOUL) == utc(2022, 10, 5, 8, 5, 39, 869000)
    assert parse_stamp("2022-10-05 17:05:39,869Z", "iso", SEOUL) == utc(2022, 10, 5, 17, 5, 39, 869000)


def test_kibana_stamps() -> None:
    assert parse_stamp("Apr 14, 2022 @ 03:14:15.000", "kibana") == utc(2022, 4, 14, 3, 14, 15)
    assert parse_stamp("Dec 4, 2022 @ 03:14:15.250", "kibana", SEOUL) == utc(2022, 12, 3, 18, 14, 15, 250000)


def test_epoch_stamps_are_milliseconds_or_seconds_with_a_point() -> None:
    assert parse_stamp("1664956976908", "epoch_ms") == utc(2022, 10, 5, 8, 2, 56, 908000)
    assert parse_stamp("1593460123.747", "epoch_ms") == utc(2020, 6, 29, 19, 48, 43, 747000)


@pytest.mark.parametrize("text", ["", "2022-13-05 17:05:39", "2022-10-05 17:05:61", "2022-10-05 25:05:39", "99999999999999999"])
@pytest.mark.parametrize("layout", ["iso", "kibana", "epoch_ms", "no-such-layout"])
def test_what_is_not_a_time_is_none(text: str, layout: str) -> None:
    assert parse_stamp(text, layout) is None


@given(st.text(max_size=40), st.sampled_from(["iso", "kibana", "epoch_ms"]))
def test_no_text_raises(text: str, layout: str) -> None:
    at = parse_stamp(text, layout)
    assert at is None or at.tzinfo is UTC


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1)))
def test_iso_reads_back_what_python_prints(naive: datetime) -> None:
    at = naive.replace(tzinfo=UTC)
    assert parse_stamp(naive.isoformat(sep=" ", timespec="microseconds"), "iso") == at
    assert parse_stamp(at.isoformat(timespec="microseconds"), "iso") == at


def test_only_stamps_finer_than_a_second_tell_lines_apart() -> None:
    assert has_millis("2022-10-05 17:05:39,869")
    assert has_millis("1664956976908")
    assert has_millis("1593460123.747")
    assert not has_millis("2022-10-05 17:05:39")
    assert not has_millis("2022-10-05T17:05:39+09:00")


def test_a_zone_that_does_not_exist_is_utc() -> None:
    assert zone_of("Mars/Olympus") is UTC
    assert zone_of("../etc") is UTC
    assert zone_of("") is UTC


@pytest.mark.parametrize(
    ("text", "layout", "expected"),
    [
        ("12/13/2022, 2:56:12.857 PM", "twelve_hour", datetime(2022, 12, 13, 14, 56, 12, 857000, tzinfo=UTC)),
        ("Aug 17, 2026 12:50:29 AM", "twelve_hour", datetime(2026, 8, 17, 0, 50, 29, tzinfo=UTC)),
        ("21/05/25 10:11:12", "short_year", datetime(2021, 5, 25, 10, 11, 12, tzinfo=UTC)),
        ("01-12-2021 10:00:00.123", "day_first", datetime(2021, 12, 1, 10, 0, 0, 123000, tzinfo=UTC)),
        ("31/Dec/2021 10:00:00", "day_first", datetime(2021, 12, 31, 10, tzinfo=UTC)),
        ("31-Dec-21 10:00:00", "day_first", datetime(2021, 12, 31, 10, tzinfo=UTC)),
        ("31 Dec 2021 10:00:00,123", "day_first", datetime(2021, 12, 31, 10, 0, 0, 123000, tzinfo=UTC)),
        ("5/12/21 9:11:12:123", "month_first", datetime(2021, 5, 12, 9, 11, 12, 123000, tzinfo=UTC)),
        ("05/12/2021, 10:11:12", "month_first", datetime(2021, 5, 12, 10, 11, 12, tzinfo=UTC)),
        ("1664989539869000", "epoch_ms", datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)),
        ("1664989539869000000", "epoch_ms", datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)),
    ],
)
def test_other_layouts(text: str, layout: str, expected: datetime) -> None:
    assert parse_stamp(text, layout) == expected


@pytest.mark.parametrize(
    ("text", "taken", "year"),
    [
        ("Oct  5 17:05:39", datetime(2022, 10, 6, tzinfo=UTC), 2022),
        ("Oct  5 17:05:39", datetime(2022, 10, 1, tzinfo=UTC), 2021),  # it would lie ahead
        ("Dec 31 23:59:59", datetime(2023, 1, 1, tzinfo=UTC), 2022),
        ("Jan  1 08:00:00", datetime(2022, 12, 31, 23, 30, tzinfo=UTC), 2023),  # a zone that nobody told: within a day
        ("0229 17:52:37.389993", datetime(2023, 6, 1, tzinfo=UTC), 2020),
    ],
)
def test_a_stamp_without_a_year_has_the_latest_that_does_not_lie_ahead(text: str, taken: datetime, year: int) -> None:
    at = parse_stamp(text, "month_day", UTC, taken)
    assert at is not None
    assert at.year == year


def test_a_stamp_without_a_year_is_no_time_when_nobody_knows_when_it_was_taken() -> None:
    assert parse_stamp("Oct  5 17:05:39", "month_day") is None
