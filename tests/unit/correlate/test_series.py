"""A series keeps the newest matches one by one, folds older ones into sums of whole minutes, and counts each once."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from engine.correlate.aggregate import Aggregate, Occurrence, total
from engine.correlate.series import KEPT, STRETCHES, Series
from tests.building import at

START = datetime(2022, 10, 5, tzinfo=UTC)  # a whole minute
MINUTE = timedelta(minutes=1)


def said(minute: float, event_id: str = "", **captures: str) -> Occurrence:
    """A match at a minute; ids come before any letter in lower case."""
    return Occurrence(START + minute * MINUTE, event_id or f"A{minute:06}", "a.log", captures)


def series(minutes: Iterable[float]) -> Series:
    made = Series()
    assert all(made.add(said(minute)) for minute in minutes)
    return made


def parts(made: Series) -> tuple[list[Aggregate], list[Occurrence]]:
    """The sums and the single ones of a series."""
    all_parts = list(made.parts())
    sums = [each for each in all_parts if isinstance(each, Aggregate)]
    return sums, [each for each in all_parts if isinstance(each, Occurrence)]


def test_what_is_said_twice_is_new_once() -> None:
    made = Series()
    assert [made.add(said(1)), made.add(said(1)), made.add(said(2))] == [True, False, True]


def test_of_equal_values_the_earliest_counts() -> None:
    made = Series(distinct=("topic",))
    assert [made.add(said(minute, topic="a")) for minute in (5, 7, 3, 4)] == [True, False, True, False]
    assert made.recent == [said(3, topic="a")]


def test_of_several_with_one_time_the_right_one_gives_way() -> None:
    made = Series(distinct=("topic",))
    for topic in "abcd":
        made.add(said(5, "one", topic=topic))
    made.add(said(9, topic="e"))
    for topic in "cb":
        assert made.add(said(1, topic=topic))
    assert [each.captures["topic"] for each in made.recent] == ["c", "b", "a", "d", "e"]


def test_what_is_taken_back_may_come_again() -> None:
    made = series((1, 2))
    assert [made.retract("A000001"), made.retract("A000001"), made.retract("no such")] == [True, False, False]
    assert made.add(said(1))
    assert made.recent == [said(1), said(2)]


@pytest.mark.parametrize(("many", "folded"), [(KEPT, 0), (KEPT + 1, 1), (KEPT + STRETCHES, STRETCHES)])
def test_all_but_the_newest_are_folded_by_the_minute(many: int, folded: int) -> None:
    sums, single = parts(series(range(many)))
    assert [each.count for each in sums] == [1] * folded
    assert single == [said(minute) for minute in range(folded, many)]


def test_nothing_is_folded_before_it_pays() -> None:
    made = series(range(4 * KEPT))
    assert len(made.recent) == 4 * KEPT
    made.add(said(4 * KEPT))
    assert len(made.recent) == KEPT


def test_beyond_so_many_stretches_they_become_twice_as_wide() -> None:
    made = series(range(KEPT + STRETCHES + 1))
    sums, _ = parts(made)
    first = int((START - datetime(1970, 1, 1, tzinfo=UTC)) / MINUTE) // 2
    assert made.width == 2
    assert sorted(made.folded) == list(range(first, first + STRETCHES // 2 + 1))
    assert [each.count for each in sums] == [*[2] * (STRETCHES // 2), 1]
    assert [(each.first, each.last) for each in sums][:2] == [(said(n).at, said(n + 1).at) for n in (0, 2)]


def test_what_is_folded_is_not_counted_again() -> None:
    made = series(range(3 * KEPT))
    made.fold()
    for minute in (0, 7):
        made.add(said(minute))
    made.add(said(7, "another"))
    sums, single = parts(made)
    assert sum(each.count for each in sums) + len(single) == 3 * KEPT + 1


@pytest.mark.parametrize("left", [0, 1])
def test_what_is_left_behind_a_fold_may_be_taken_back(left: int) -> None:
    made = series(range(KEPT + 1))
    sums, single = parts(made)
    for each in single[left:]:
        assert made.retract(each.event_id)
    assert parts(made) == (sums, single[:left])


def test_a_series_folds_whole_minutes_and_loses_no_count() -> None:
    made = Series()
    for n in range(1000):
        made.add(Occurrence(at(n), f"e{n}", "a.log", {"size": n}))
    summed = total(list(made.parts()))
    assert len(made.recent) <= KEPT
    assert made.horizon is not None and made.horizon.second == 0
    assert (summed.count, summed.first, summed.last) == (1000, at(0), at(999))
    assert (summed.captures["size"].low, summed.captures["size"].high, summed.captures["size"].total) == (0, 999, 499500)
