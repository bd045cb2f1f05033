"""Spans of Seen say when each source spoke, however the input was cut; progress passes only after what was read before it."""

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from engine.match import match
from engine.model.matches import ActivitySpan, Match
from engine.model.records import LogEvent, Progress, Tick
from tests.building import at, contains, event, plan, progress, signature, tick

PLAN = plan(signature("r", contains("boom")))


def spans(found: list[object]) -> list[tuple[str, datetime, datetime]]:
    return [(span.source_id, span.first, span.last) for span in found if isinstance(span, ActivitySpan)]


def test_a_span_ends_where_a_source_pauses_for_a_minute() -> None:
    found = list(match([event("x", 0), event("x", 59.999), event("x", 119.999)], PLAN))
    assert spans(found) == [("a.log", at(0), at(59.999)), ("a.log", at(119.999), at(119.999))]


def test_events_without_a_stamp_say_nothing() -> None:
    assert spans(list(match([event("boom", None)], PLAN))) == []


def test_spans_come_before_progress_and_ticks() -> None:
    found = list(match([event("x", 0), progress("a.log"), event("boom", 5), tick(9)], PLAN))
    assert [type(item) for item in found] == [ActivitySpan, Progress, Match, ActivitySpan, Tick]


def test_the_observer_sees_every_event_once_with_its_matches() -> None:
    calls: list[tuple[str, int]] = []

    def observe(seen_event: LogEvent, found: list[Match]) -> None:
        calls.append((seen_event.text, len(found)))

    list(match([event("x", 0), event("boom", 1)], PLAN, observe))
    assert calls == [("x", 0), ("boom", 1)]


def joined(parts: list[tuple[str, datetime, datetime]]) -> list[list[datetime]]:
    """Return the union of spans, joined over pauses of less than a minute."""
    out: list[list[datetime]] = []
    for _, first, last in sorted(parts):
        if out and (first - out[-1][1]).total_seconds() < 60:
            out[-1][1] = max(out[-1][1], last)
        else:
            out.append([first, last])
    return out


@given(st.lists(st.integers(0, 600), min_size=1, max_size=30), st.data())
def test_the_union_of_spans_depends_neither_on_order_nor_on_batches(seconds: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(seconds))
    border = data.draw(st.integers(0, len(order)))
    whole = spans(list(match((event("x", s) for s in sorted(seconds)), PLAN)))
    parts = [order[:border], order[border:]]
    cut = [span for part in parts for span in spans(list(match((event("x", s) for s in part), PLAN)))]
    assert joined(cut) == joined(whole)
