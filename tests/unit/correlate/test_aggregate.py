"""Aggregates: the sum of sums is the sum of all, whatever the grouping; the earliest and latest events are kept."""

from random import Random
from typing import Any

import pytest

from engine.codec import dumps, loads
from engine.correlate.aggregate import MAX_EVENTS, Aggregate, Occurrence, added, tally, total
from tests.building import at


def occurrence(seconds: float, **captures: object) -> Occurrence:
    return Occurrence(at(seconds), f"e{seconds}", "a.log", captures)  # type: ignore[arg-type]


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
            tuple(sorted(random.sample(("login", "tls", "node"), random.randrange(3)))),
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


def test_a_sum_that_was_stored_is_told_like_the_one_that_was_not() -> None:
    made = tally([Occurrence(at(second), str(second), "s", {"size": second, "share": second / 2}) for second in range(9)])
    assert repr(loads(dumps(made), Aggregate)) == repr(made)


def test_the_sum_of_two_leaves_them_as_they_are() -> None:
    one, other = (tally([Occurrence(at(second), str(second), "s", {"size": second})], timed=True) for second in (1, 2))
    before = repr((one, other))
    assert added(one, other, timed=True).count == 2
    assert repr((one, other)) == before


def test_an_item_held_when_it_did_once() -> None:
    every = [Occurrence(at(n), f"e{n}", "a.log", items=("login",) if n == 3 else ()) for n in range(100)]
    assert tally(every).items == ["login"]
    assert total([tally(every[:2]), tally(every[2:]), *every]).items == ["login"]
    assert tally(every[4:]).items == []


def test_what_was_stored_before_there_were_items_is_read() -> None:
    made = tally([occurrence(1, size=3)], timed=True)
    stored = loads(dumps(made), list[Any])
    assert loads(dumps(stored[:-1]), Aggregate) == made
    single = loads(dumps(occurrence(1, size=3)), list[Any])
    assert loads(dumps(single[:-1]), Occurrence) == occurrence(1, size=3)


def test_nothing_has_no_sum() -> None:
    with pytest.raises(ValueError, match="no occurrences"):
        tally([])
