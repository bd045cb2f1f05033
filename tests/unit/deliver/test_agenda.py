"""When to look again: each key once, at the time it was given last."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.deliver.agenda import Agenda

NOON = datetime(2023, 2, 3, 12, tzinfo=UTC)


def at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


def test_keys_are_due_in_order_and_once() -> None:
    agenda = Agenda()
    for key, second in (("b", 20), ("a", 10), ("c", 30)):
        agenda.put(key, at(second))
    assert agenda.due(at(9)) == []
    assert agenda.due(at(20)) == ["a", "b"]
    assert agenda.due(at(20)) == []
    assert agenda.due(at(99)) == ["c"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 50)))), st.integers(0, 50))
def test_the_last_time_counts(puts: list[tuple[str, int | None]], now: int) -> None:
    agenda, last = Agenda(), dict[str, int | None]()
    for key, second in puts:
        agenda.put(key, None if second is None else at(second))
        last[key] = second
    assert sorted(agenda.due(at(now))) == sorted(key for key, second in last.items() if second is not None and second <= now)


def test_times_that_were_replaced_take_no_room() -> None:
    agenda = Agenda()
    for second in range(10_000):
        agenda.put("a", at(second))
    assert len(agenda._heap) < 100
    assert agenda.due(at(9_998)) == []
    assert agenda.due(at(9_999)) == ["a"]
