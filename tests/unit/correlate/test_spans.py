"""Spans of activity: those closer than the gap are one, whatever the order they come in; gaps lie between them."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.correlate.spans import MAX_SPANS, Gap, Spans, union
from tests.building import at

MINUTE = timedelta(minutes=1)
SECONDS = st.lists(st.integers(0, 900), min_size=1, max_size=30)


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


def test_active_between_excludes_both_ends() -> None:
    made = spans((0, 10), (100, 110))
    assert made.active_between(at(9), at(1000))
    assert not made.active_between(at(10), at(100))
    assert made.active_between(at(10), at(100.001))
    assert made.active_between(at(109), None)
    assert not made.active_between(at(110), None)


def test_too_many_spans_forget_the_oldest_pause_not_what_was_heard() -> None:
    made = spans(*((n * 100, n * 100) for n in range(MAX_SPANS + 5)))
    found = list(made)
    assert len(found) == MAX_SPANS
    assert found == [(at(0), at(500)), *((at(n * 100), at(n * 100)) for n in range(6, MAX_SPANS + 5))]
    assert made.last == at((MAX_SPANS + 4) * 100)


def test_a_union_of_unions() -> None:
    assert list(union([spans((0, 10)), spans((50, 60), (200, 210))], MINUTE)) == [(at(0), at(60)), (at(200), at(210))]
    assert not union([], MINUTE)
