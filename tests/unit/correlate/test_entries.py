"""Entries of a window: an aggregate without times weighs as much as can lie between its ends."""

import pytest

from engine.correlate.aggregate import Occurrence, tally
from engine.correlate.entries import entries
from tests.building import at


def occurrence(seconds: float) -> Occurrence:
    return Occurrence(at(seconds), f"e{seconds}", "a.log", {})


@pytest.mark.parametrize(("number", "weight"), [(1, 1), (30, 1), (31, 2), (61, 3), (1000, 34)])
def test_a_sum_that_does_not_know_its_times_counts_for_as_many_as_can_lie_between_its_ends(number: int, weight: int) -> None:
    every = tally([occurrence(n) for n in range(number)])
    (entry,) = entries([every], 30.0, "rule", "value")
    assert (entry.weight, entry.first, entry.last) == (weight, at(0), at(number - 1))
    assert (entry.parts, entry.rule_id, entry.value) == ((every,), "rule", "value")
    assert [each.weight for each in entries([every], 0.0)] == [number]
    assert [each.weight for each in entries([tally([occurrence(0), occurrence(99)])], 30.0)] == [2]
