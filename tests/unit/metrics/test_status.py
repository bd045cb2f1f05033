"""The status that a part of a run stores about itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.metrics.status import MOST_RULES, MOST_STREAMS, STORE_EVERY_S, JobRecord, NotifierRecord, StatusClock
from engine.model.statuses import StreamStatus

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_a_job_counts_what_its_batches_read_and_leave_unread() -> None:
    times = iter(NOON + timedelta(seconds=n) for n in range(100))
    record = JobRecord("process 1 on a", lambda: next(times))
    record.read("a.log", 2, 80, NOON)
    record.stored({"a.log": 700})
    record.triggered(3.0)
    unread = record.status()
    record.read("a.log", 1, 40, NOON - timedelta(hours=1))
    record.read("a.log", 0, 0, None)
    record.stored({})
    record.triggered(0.5)
    status = record.status()
    assert unread.streams["a.log"].unread == 700
    assert status.streams == {"a.log": StreamStatus(3, 120, NOON + timedelta(seconds=3), NOON, 0)}
    assert (status.batches, status.trigger_s, status.slowest_s, status.started_at) == (2, 0.5, 3.0, NOON)


def test_of_many_streams_those_with_something_unread_and_the_last_ones_are_stored() -> None:
    times = iter(NOON + timedelta(seconds=n) for n in range(2 * MOST_STREAMS))
    record = JobRecord("process 1 on a", lambda: next(times))
    for number in range(MOST_STREAMS + 50):
        record.read(f"{number}.log", 1, 1, None)
    record.stored({"0.log": 9})
    status = record.status()
    assert (len(status.streams), status.stream_count) == (MOST_STREAMS, MOST_STREAMS + 50)
    assert {"0.log", f"{MOST_STREAMS + 49}.log"} <= status.streams.keys()
    assert "1.log" not in status.streams


def test_the_rules_that_matched_most_are_stored_most_first() -> None:
    record = JobRecord("process 1 on a", lambda: NOON)
    record.matched({f"rule-{number}": number for number in range(1, MOST_RULES + 5)})
    record.matched({"rule-1": 100})
    matches = record.status().matches
    assert [*matches.items()][:2] == [("rule-1", 101), (f"rule-{MOST_RULES + 4}", MOST_RULES + 4)]
    assert len(matches) == MOST_RULES


def test_a_status_is_due_at_once_and_then_now_and_then() -> None:
    now_s = [5.0]
    clock = StatusClock(lambda: now_s[0])
    assert [clock.is_due(), clock.is_due()] == [True, False]
    now_s[0] += STORE_EVERY_S
    assert clock.is_due()


def test_a_notifier_names_its_process() -> None:
    status = NotifierRecord("process 1 on a", lambda: NOON).status()
    assert (status.holder, status.at) == ("process 1 on a", NOON)
