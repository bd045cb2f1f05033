"""The bounded sets that correlation keeps: spans, runs, moments, series, versions. Order of adding never matters."""

from datetime import datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec import dumps, loads
from engine.correlate.aggregate import MAX_EVENTS, Aggregate, Occurrence, added, tally, total
from engine.correlate.entries import entries
from engine.correlate.moments import MAX_MOMENTS, Moments
from engine.correlate.runs import MAX_RUNS, Runs
from engine.correlate.series import KEPT, Series
from engine.correlate.spans import MAX_SPANS, Gap, Spans, union
from engine.correlate.time_histogram import MAX_CELLS, TimeHistogram, cells
from engine.correlate.versions import within, written
from tests.building import at

MINUTE = timedelta(minutes=1)
SECONDS = st.lists(st.integers(0, 900), min_size=1, max_size=30)


def occurrence(seconds: float, **captures: object) -> Occurrence:
    return Occurrence(at(seconds), f"e{seconds}", "a.log", captures)  # type: ignore[arg-type]


def spans(*pairs: tuple[float, float]) -> Spans:
    return Spans(MINUTE, [(at(first), at(last)) for first, last in pairs])


def test_spans_less_than_the_gap_apart_are_one() -> None:
    assert list(spans((0, 10), (69.999, 80))) == [(at(0), at(80))]
    assert list(spans((0, 10), (70, 80))) == [(at(0), at(10)), (at(70), at(80))]


@given(SECONDS, st.data())
def test_spans_in_any_order(seconds: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(seconds))
    assert list(spans(*((s, s + 5) for s in order))) == list(spans(*((s, s + 5) for s in sorted(seconds))))


@given(SECONDS)
def test_gaps_lie_between_spans_and_after_the_last(seconds: list[int]) -> None:
    made = spans(*((s, s) for s in seconds))
    *closed, last = made.gaps()
    assert last == Gap(at(max(seconds)), None)
    assert all(gap.until is not None and gap.until - gap.since >= MINUTE for gap in closed)
    assert all(not gap.since < at(s) < (gap.until or at(s)) for gap in closed for s in seconds)


def test_adding_what_is_known_changes_nothing() -> None:
    made = spans((0, 100))
    assert (made.add(at(5), at(50)), made.add(at(5), at(101))) == (False, True)


def test_heard_between_excludes_both_ends() -> None:
    made = spans((0, 10), (100, 110))
    assert made.heard_between(at(9), at(1000))
    assert not made.heard_between(at(10), at(100))
    assert made.heard_between(at(10), at(100.001))
    assert made.heard_between(at(109), None)
    assert not made.heard_between(at(110), None)


def test_too_many_spans_forget_the_oldest_pause_not_what_was_heard() -> None:
    made = spans(*((n * 100, n * 100) for n in range(MAX_SPANS + 5)))
    found = list(made)
    assert len(found) == MAX_SPANS
    assert found == [(at(0), at(500)), *((at(n * 100), at(n * 100)) for n in range(6, MAX_SPANS + 5))]
    assert made.last == at((MAX_SPANS + 4) * 100)


def test_a_union_of_unions() -> None:
    assert list(union([spans((0, 10)), spans((50, 60), (200, 210))], MINUTE)) == [(at(0), at(60)), (at(200), at(210))]
    assert not union([], MINUTE)


@given(SECONDS, st.data())
def test_runs_in_any_order(seconds: list[int], data: st.DataObject) -> None:
    def made(order: list[int]) -> list[tuple[datetime, datetime]]:
        runs: Runs[Occurrence] = Runs(MINUTE)
        for s in order:
            runs.add(occurrence(s))
        return [(first.at, last.at) for first, last in runs]

    assert made(data.draw(st.permutations(seconds))) == made(sorted(seconds)) == list(spans(*((s, s) for s in seconds)))


def test_runs_find_pauses_and_what_came_before() -> None:
    runs = Runs(MINUTE, [(occurrence(0), occurrence(30)), (occurrence(100), occurrence(100))])
    assert [(a.at, b.at) for a, b in runs.pauses()] == [(at(30), at(100))]
    found = [runs.last_before(at(s)) for s in (-1, 29, 99, 100)]
    assert [each and each.at for each in found] == [None, at(0), at(30), at(100)]


def test_too_many_runs_join_the_oldest() -> None:
    runs: Runs[Occurrence] = Runs(MINUTE)
    for n in range(MAX_RUNS + 9):
        runs.add(occurrence(n * 100))
    assert len(list(runs)) == MAX_RUNS
    first, last = next(iter(runs))
    assert (first.at, last.at) == (at(0), at(900))


def test_moments_keep_the_earliest_of_each_second_and_the_newest_seconds() -> None:
    moments = Moments()
    for n in reversed(range(MAX_MOMENTS * 2)):
        moments.add(at(n + 0.5), "late")
        moments.add(at(n + 0.25), "early")
    stamps = moments.stamps()
    assert len(stamps) == MAX_MOMENTS
    assert stamps[-1] == (at(MAX_MOMENTS * 2 - 1 + 0.25), "early")


def test_a_series_folds_whole_minutes_and_loses_no_count() -> None:
    series = Series()
    for n in range(1000):
        series.add(occurrence(n, size=n))
    parts = list(series.parts())
    assert len(series.kept) <= KEPT
    assert series.horizon is not None and series.horizon.second == 0
    summed = total(parts)
    assert (summed.count, summed.first, summed.last) == (1000, at(0), at(999))
    assert (summed.captures["size"].low, summed.captures["size"].high, summed.captures["size"].total) == (0, 999, 499500)


def test_the_sum_of_sums_is_the_sum_of_all() -> None:
    every = [occurrence(n % 70 + n / 100, size=n) for n in range(120)]
    assert total([tally(every[:50]), tally(every[50:60]), *every[60:]]) == tally(every)


@pytest.mark.parametrize("seed", range(20))
def test_sums_added_up_in_any_grouping_are_the_sum_of_all(seed: int) -> None:
    random = Random(seed)
    every = [
        Occurrence(
            at(random.randrange(12)),
            f"e{n}",
            random.choice(("a.log", "b.log")),
            {"size": random.choice((*range(15), "none"))},
            {"zone": "z", "rack": random.choice("rrrrrrs")},
        )
        for n in range(30)
    ]
    random.shuffle(every)
    assert total([tally(every[:8]), tally(every[8:20]), *every[20:]]) == tally(every)


@pytest.mark.parametrize("number", [1, 6, 30, 50, 51, 60])
def test_of_many_events_the_earliest_and_the_latest_are_known_each_once(number: int) -> None:
    every = [occurrence(n) for n in range(number)]
    outer = every if number <= 2 * MAX_EVENTS else [*every[:MAX_EVENTS], *every[-MAX_EVENTS:]]
    for made in (tally(every), total([tally(every[: number // 2 + 1]), *every[number // 2 :]])):
        assert made.events() == tuple(each.event_id for each in outer)


@pytest.mark.parametrize(("number", "weight"), [(1, 1), (30, 1), (31, 2), (61, 3), (1000, 34)])
def test_a_sum_that_does_not_know_its_times_counts_for_as_many_as_can_lie_between_its_ends(number: int, weight: int) -> None:
    every = tally([occurrence(n) for n in range(number)])
    (entry,) = entries([every], 30.0, "rule", "value")
    assert (entry.weight, entry.first, entry.last) == (weight, at(0), at(number - 1))
    assert (entry.parts, entry.rule_id, entry.value) == ((every,), "rule", "value")
    assert [each.weight for each in entries([every], 0.0)] == [number]
    assert [each.weight for each in entries([tally([occurrence(0), occurrence(99)])], 30.0)] == [2]


def test_a_sum_that_was_stored_is_told_like_the_one_that_was_not() -> None:
    made = tally([Occurrence(at(second), str(second), "s", {"size": second, "share": second / 2}) for second in range(9)])
    assert repr(loads(dumps(made), Aggregate)) == repr(made)


def test_the_sum_of_two_leaves_them_as_they_are() -> None:
    one, other = (tally([Occurrence(at(second), str(second), "s", {"size": second})], timed=True) for second in (1, 2))
    before = repr((one, other))
    assert added(one, other, timed=True).count == 2
    assert repr((one, other)) == before


def test_nothing_has_no_sum() -> None:
    with pytest.raises(ValueError, match="nothing"):
        tally([])


@pytest.mark.parametrize(
    ("version", "bounds", "holds"),
    [
        ("2.6.1", ((("<=", "2.6")),), True),
        ("2.7.0", ((("<=", "2.6")),), False),
        ("2.6.1", (((">", "2.6")),), False),
        ("2.6.1", ((("==", "2.6")),), True),
        ("2.6.1", ((("!=", "2.6")),), False),
        ("3", (((">=", "3.0")),), True),
        ("10.0", (((">=", "9.1")),), True),
        ("3.4.0-cp1", (((">=", "2.1")), (("<", "4"))), True),
        ("v0.8.2", ((("<", "0.9")),), True),
        ("unknown", ((("<", "0.9")),), True),
        ("1.0", (), True),
    ],
)
def test_versions_are_compared_as_far_as_the_bound_goes(version: str, bounds: tuple[tuple[str, str], ...], holds: bool) -> None:
    assert within(version, bounds) is holds


def test_bounds_are_written_as_in_a_rule() -> None:
    assert written(((">=", "2.1"), ("<", "4.1"))) == ">=2.1,<4.1"


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=300), st.data())
def test_cells_added_up_in_any_order_are_the_same_and_bounded(seconds: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(seconds))
    border = data.draw(st.integers(0, len(order)))
    parts = [cells(at(s) for s in part) for part in (order[:border], order[border:])]
    together = TimeHistogram()
    for part in parts:
        together.merge(part)
    assert together == cells(at(s) for s in seconds)
    assert len(together.counts) <= MAX_CELLS
    assert sum(count for _, _, count in together.spans()) == len(seconds)
