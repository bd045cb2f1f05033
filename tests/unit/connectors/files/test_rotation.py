"""What a file's name says of its period, in the zone of its source."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from connectors.files.rotation import rotation

SEOUL = ZoneInfo("Asia/Seoul")


@pytest.mark.parametrize(
    ("name", "until"),
    [
        ("server.log.2022-10-05-17", datetime(2022, 10, 5, 9, tzinfo=UTC)),
        ("server.log.2022-10-05-23.gz", datetime(2022, 10, 5, 15, tzinfo=UTC)),
        ("app.log.2022-10-05", datetime(2022, 10, 5, 15, tzinfo=UTC)),
        ("app.log-20221231.zst", datetime(2022, 12, 31, 15, tzinfo=UTC)),
        ("app.log.2022-10-05_17-30", datetime(2022, 10, 5, 8, 31, tzinfo=UTC)),
        ("0.log.20221005-173002", datetime(2022, 10, 5, 8, 30, 2, tzinfo=UTC)),
        ("0.log.20221005-173002.gz", datetime(2022, 10, 5, 8, 30, 2, tzinfo=UTC)),
    ],
)
def test_a_dated_name_covers_its_period(name: str, until: datetime) -> None:
    said = rotation(f"/var/log/{name}", SEOUL)
    assert said.closed
    assert said.covers_until == until


@pytest.mark.parametrize("name", ["server.log.1", "server.log.12.gz", "server.log.gz", "a.log.2022-10-05.3", "a.2022-19-39"])
def test_a_rotated_name_without_a_period_is_closed_at_an_unknown_time(name: str) -> None:
    said = rotation(name, SEOUL)
    assert (said.closed, said.covers_until) == (True, None)


@pytest.mark.parametrize("name", ["server.log", "broker-1", "app-2022-10-05.log", "kafka-3.9.log", "id-12345678"])
def test_other_names_are_live(name: str) -> None:
    assert not rotation(name, SEOUL).closed
