"""In the hour that a zone has twice a death is told, or it is said that it could not be judged."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from engine.incident import MemoryLedger
from engine.pipeline import replay
from tests.rulepack.playing import STORIES, Story, lines_of, plan, story

WHOLE = story(next(folder for folder in STORIES if folder.name.startswith("4-"))).only(lambda name: name.startswith("broker-"))
SILENT = WHOLE.lines(lambda _, line: "ReplicaFetcher" not in line and "node 1" not in line)  # nobody complains
STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
DEATH = datetime(2022, 10, 5, 17, 5, 39, tzinfo=UTC)
PUT_BACK = {"Europe/Berlin": datetime(2022, 10, 30, 1, tzinfo=UTC), "America/New_York": datetime(2022, 11, 6, 6, tzinfo=UTC)}


def moved(zone: str, death: datetime) -> Story:
    """Return the story at another time, as brokers in `zone` print it, without an offset."""

    def local(found: re.Match[str]) -> str:
        at = datetime.fromisoformat(f"{found[1]}+00:00") - DEATH + death
        return f"[{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}"

    logs = {
        re.sub(r"\.2022.*", f".{number}", name): STAMP.sub(local, text)
        for number, (name, text) in enumerate(SILENT.logs.items())
    }
    whole: dict[str, str] = {}
    for name, text in logs.items():
        folder = name.partition("/")[0]
        whole[f"{folder}/server.log"] = whole.get(f"{folder}/server.log", "") + text
    return Story(whole, {"timezone": zone})


def judged(told: Story) -> tuple[set[str], set[str]]:
    """Return the brokers that went silent, and the logs that are said not to be judged for their clock."""
    ledger = MemoryLedger()
    final = {incident.id: incident for incident in replay(lines_of(told), plan(), ledger)}
    silent = {i.labels["broker"] for i in final.values() if i.rule == "broker-silent" and i.status in ("open", "resolved")}
    return silent, {blind.what for blind in ledger.blinds("default") if "clock was put back" in blind.why}


@pytest.mark.parametrize("minutes", range(-60, 60, 15))
@pytest.mark.parametrize("zone", sorted(PUT_BACK))
def test_a_death_around_the_put_back_clock_is_told_or_said_not_to_be_judged(zone: str, minutes: int) -> None:
    silent, unjudged = judged(moved(zone, PUT_BACK[zone] + timedelta(minutes=minutes)))
    assert silent == {"1"} or "broker-1/server.log" in unjudged


def test_an_hour_that_comes_once_is_judged() -> None:
    assert judged(moved("Europe/Berlin", PUT_BACK["Europe/Berlin"] - timedelta(hours=12))) == ({"1"}, set())


def test_utc_has_no_hour_twice() -> None:
    assert judged(moved("UTC", PUT_BACK["Europe/Berlin"])) == ({"1"}, set())
