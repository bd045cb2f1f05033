"""The axis of time: in order, equal pauses equally long, and a burst legible beside a silence of hours."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.picture.scale import Scale
from tests.unit.cli.incidents import AT


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=40))
def test_places_are_in_order_and_on_the_axis(seconds: list[float]) -> None:
    times = sorted(AT + at(s) for s in seconds)
    scale = Scale(times, 10, 500)
    places = [scale.x(time) for time in times]
    assert places == sorted(places)
    assert all(10 <= place <= 500 for place in places)


def test_equal_pauses_are_equally_long_and_a_burst_is_legible() -> None:
    beats = [AT + at(600 * n) for n in range(7)]
    burst, end = beats[-1] + at(33), beats[-1] + at(7200)
    scale = Scale([*beats, burst, end], 0, 1000)
    steps = [round(scale.x(later) - scale.x(earlier)) for earlier, later in pairwise(beats)]
    assert max(steps) - min(steps) <= 1
    assert scale.x(burst) - scale.x(beats[-1]) > 20
    assert scale.x(end) == 1000


def test_ticks_are_apart_and_the_wanted_ones_come_first() -> None:
    times = [AT + at(n) for n in range(100)]
    ticks = Scale(times, 0, 1000).ticks([times[50], times[0], times[99]], 100)
    assert {times[0], times[50], times[99]} <= set(ticks)
    assert len(ticks) <= 11
    assert ticks == sorted(ticks)


def test_a_single_time_is_in_the_middle() -> None:
    assert Scale([AT], 0, 100).x(AT) == 50
