from datetime import UTC, datetime, timedelta, timezone

from engine.model.answers import iso


def test_times_are_utc() -> None:
    seoul = timezone(timedelta(hours=9))
    assert iso(datetime(2023, 2, 3, 11, 5, 2, tzinfo=seoul)) == "2023-02-03T02:05:02Z"
    assert iso(datetime(2023, 2, 3, 2, 5, 2, 5000, tzinfo=UTC)) == "2023-02-03T02:05:02.005Z"
    assert iso(None) is None
