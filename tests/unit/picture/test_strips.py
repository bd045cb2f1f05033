"""The sparkline of an incident, and the strip of the last day."""

from __future__ import annotations

from datetime import timedelta
from xml.etree import ElementTree

import pytest

from engine.model.incidents import AlertCourse
from engine.picture.strips import day_strip, occurrences, sparkline
from tests.unit.cli.incidents import AT, incident

SVG = "{http://www.w3.org/2000/svg}"


def course(count: int, offsets: tuple[int, ...], last_s: int) -> AlertCourse:
    return AlertCourse("root", "one", "One", "high", AT, AT + timedelta(seconds=last_s), None, count, {}, (), "", offsets)


def test_events_are_counted_where_they_happened() -> None:
    assert occurrences(incident(course=(course(3, (0, 50, 99), 100),)), bars=4) == [1, 0, 1, 1]


def test_the_symptoms_count_too() -> None:
    assert occurrences(incident(course=(course(1, (0,), 0), course(2, (0, 100), 100))), bars=2) == [2, 1]


def test_events_whose_times_are_not_kept_are_spread_between_those_that_are() -> None:
    counts = occurrences(incident(course=(course(1050, (*range(25), *range(976, 1001)), 1000),)), bars=10)
    assert sum(counts) == 1050
    assert max(counts) < 2 * min(counts)


def test_a_storm_of_millions_costs_no_more() -> None:
    counts = occurrences(incident(course=(course(50_000_000, (*range(25), *range(976, 1001)), 1000),)), bars=10)
    assert sum(counts) == 2050


def test_there_is_none_without_times() -> None:
    assert occurrences(incident()) == []
    assert sparkline(incident()) == ""


@pytest.mark.parametrize("courses", [(course(1, (0,), 0),), (course(2, (0, 7), 7),)])
def test_a_sparkline_says_what_it_shows(courses: tuple[AlertCourse, ...]) -> None:
    root = ElementTree.fromstring(sparkline(incident(course=courses)).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))
    assert root.get("role") == "img"
    assert "2023-02-03 02:05:02 UTC" in str(root.get("aria-label"))


def test_the_strip_counts_what_went_on_in_each_hour_by_severity() -> None:
    now = AT + timedelta(hours=3)
    going_on = ("critical", AT, AT + timedelta(hours=1), 1)
    moment = ("low", AT, AT, 7)
    old = ("high", AT - timedelta(days=2), AT - timedelta(days=2), 1)
    root = ElementTree.fromstring(day_strip([going_on, moment, old], now).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))
    titles = [group.findtext(f"{SVG}title") for group in root.iter(f"{SVG}g")]
    assert titles == ["02:00: 1 critical, 7 low", "03:00: 1 critical"]
