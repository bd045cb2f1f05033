"""Which stamps are times, at the one gate that all of them pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.model.records import AHEAD_LABEL, EARLIEST_LABEL, NEAR_LABEL, Record
from engine.parse.stamps import AHEAD, EARLIEST, LATEST, ZONES, printed_day, stamp_of
from tests.unit.parse.reading import event

TAKEN = datetime(2022, 10, 5, 18, tzinfo=UTC)
OUT = ["0001-01-01", "0001-01-02", "1970-01-01", "1989-12-31", "9999-12-31", "9999-12-30", "2101-01-02"]
LINES = {
    "log4j": "[{day} 00:00:00,000] ERROR boom (a.B)",
    "go": '{{"level":"error","msg":"boom","time":"{day}T00:00:00Z"}}',
    "zap": '{{"level":"error","ts":"{day}T00:00:00.000Z","msg":"boom"}}',
    "docker": '{{"log":"boom\\n","stream":"stderr","time":"{day}T00:00:00.000000000Z"}}',
    "cri": "{day}T00:00:00.000000000Z stderr F boom",
    "journal": "{day}T00:00:00+00:00 host-1 kafka[7]: boom",
}


@pytest.mark.parametrize("day", OUT)
@pytest.mark.parametrize("line", LINES)
def test_a_line_with_an_impossible_stamp_has_none_and_says_so(line: str, day: str) -> None:
    for taken in (TAKEN, None):
        found = event(LINES[line].format(day=day), taken=taken)
        assert (found.timestamp, found.misdated) == (None, True)
        assert found.at == (taken or datetime(1970, 1, 1, tzinfo=UTC))
        assert "boom" in found.message


def test_a_wrappers_time_stands_in_for_an_impossible_stamp() -> None:
    inner = r"{\"level\":\"error\",\"msg\":\"boom\",\"time\":\"0001-01-01T00:00:00Z\"}\n"
    found = event(f'{{"log":"{inner}","time":"2022-10-05T17:05:39Z"}}')
    assert (found.timestamp, found.misdated) == (datetime(2022, 10, 5, 17, 5, 39, tzinfo=UTC), False)
    assert event('{"level":"error","msg":"boom","time":"0001-01-01T00:00:00Z","ts":1664989539.0}').timestamp is not None


@pytest.mark.parametrize(
    ("stamp", "ahead", "holds"),
    [
        ("Z", timedelta(minutes=4), True),
        ("Z", timedelta(minutes=6), False),
        ("+09:00", timedelta(minutes=4), True),
        ("+09:00", timedelta(minutes=6), False),
        ("", ZONES + timedelta(minutes=4), True),  # local time of an unknown zone
        ("", ZONES + timedelta(minutes=6), False),
        ("", -timedelta(days=11_000), True),
        ("", -timedelta(days=12_000), False),
    ],
)
def test_a_stamp_lies_at_most_a_little_ahead_of_when_its_line_was_taken(stamp: str, ahead: timedelta, holds: bool) -> None:
    at = TAKEN + ahead
    local = at + timedelta(hours=9) if stamp == "+09:00" else at
    found = stamp_of(Record("a", 0, "", ingested_at=TAKEN), f"{local:%Y-%m-%d %H:%M:%S}{stamp}", "iso")
    assert found == ((at, False) if holds else (None, True))


OF_ARCHIVES = [datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 1980, 9999)]


@pytest.mark.parametrize("taken", [None, *OF_ARCHIVES])
def test_a_time_that_archives_give_to_files_bounds_nothing(taken: datetime | None) -> None:
    found = event("[2022-10-05 17:05:39,869] ERROR boom (a.B)", taken=taken)
    assert found.timestamp is not None
    assert event("boom", taken=taken).at == datetime(1970, 1, 1, tzinfo=UTC)


def test_a_configuration_bounds_stamps_otherwise() -> None:
    line = "[1985-10-05 17:05:39,869] ERROR boom (a.B)"
    assert event(line).misdated
    found = event(line, **{EARLIEST_LABEL: "1980-01-01T00:00:00+00:00"})
    assert found.timestamp is not None
    assert set(found.labels) == {"cluster", "source"}
    ahead = "2022-10-05T19:00:00.000000000Z stderr F boom"
    assert event(ahead, taken=TAKEN).misdated
    assert not event(ahead, taken=TAKEN, **{AHEAD_LABEL: "7200"}).misdated


def test_no_arithmetic_on_a_time_in_bounds_leaves_the_calendar() -> None:
    most = timedelta(days=100_000)  # more than any duration of a rule
    assert EARLIEST - most > datetime.min.replace(tzinfo=UTC)
    assert LATEST + AHEAD + ZONES + most < datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("stamp", "year"), [("0716 06:25:28", 2024), ("0110 06:25:28", 2025), ("1231 06:25:28", 2024), ("0120 06:25:28", 2024)]
)
def test_a_stamp_without_a_year_is_nearest_to_a_day_that_its_source_prints(stamp: str, year: int) -> None:
    taken = datetime(2026, 11, 27, tzinfo=UTC)
    labels = {NEAR_LABEL: "2024-07-16"}
    at, _ = stamp_of(Record("s", 0, "", ingested_at=taken, labels=labels), stamp, "month_day")
    assert at is not None
    assert at.year == year
    alone, _ = stamp_of(Record("s", 0, "", ingested_at=taken), stamp, "month_day")
    assert alone is not None
    assert alone.year in (2025, 2026)


def test_a_day_with_its_year_is_looked_for_where_lines_lack_it() -> None:
    klog, sarama = b"F0716 06:25:28.912203 1 a.go:9] boom", b"[sarama] 2024/07/16 06:25:28 EOF"
    assert printed_day(klog + b"\n" + sarama) == "2024-07-16"
    assert printed_day(klog) == ""
    assert printed_day(sarama) == ""
    assert printed_day(klog + b" since a long time, it was built at 2019-01-01 00:00:00") == ""
