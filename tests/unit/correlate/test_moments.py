"""Moments: the earliest of each second, and no more than the newest seconds."""

from engine.correlate.moments import MAX_MOMENTS, Moments
from tests.building import at


def test_moments_keep_the_earliest_of_each_second_and_the_newest_seconds() -> None:
    moments = Moments()
    for n in reversed(range(MAX_MOMENTS * 2)):
        moments.add(at(n + 0.5), "late")
        moments.add(at(n + 0.25), "early")
    stamps = moments.stamps()
    assert len(stamps) == MAX_MOMENTS
    assert stamps[-1] == (at(MAX_MOMENTS * 2 - 1 + 0.25), "early")
