"""When a receiver is told, to the second: waits, changes, repetitions."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.notifications import Reason
from engine.model.routes import Timings
from engine.route import Decision, decide_notification, notification_log

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
TIMINGS = Timings(group_wait_s=30, group_interval_s=300, repeat_interval_s=4 * 3600)
OPEN = Incident(
    id="inc-1",
    key=("default", "a", ()),
    revision=1,
    rule="a",
    title="A",
    severity="high",
    status="open",
    component="any",
    labels={},
    first_seen=None,
    last_seen=None,
    resolved_at=None,
    count=1,
    cause="",
    impact="",
)
RESOLVED = replace(OPEN, status="resolved", revision=2)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def decided(before: Incident | None, now: Incident, timings: Timings = TIMINGS, **how: bool) -> Decision:
    """Return the decision over `now`, known since noon, when `before` (or nothing) was told at noon."""
    return decide_notification(notification_log(before, NOON, {}) if before else None, now, timings, NOON, **how)


@pytest.mark.parametrize(
    ("timings", "explained", "seconds"),
    [
        (TIMINGS, False, 30),
        (TIMINGS, True, 30),
        (replace(TIMINGS, group_wait_s=5), True, 20),
        (replace(TIMINGS, group_wait_s=0), True, 20),
        (replace(TIMINGS, group_wait_s=0), False, 0),
    ],
)
def test_the_first_notification_waits_for_the_group_and_for_possible_causes(
    timings: Timings, explained: bool, seconds: int
) -> None:
    decision = decided(None, OPEN, timings, explained=explained)
    assert (decision.reason, decision.at) == (Reason.OPENED, after(seconds))
    assert not decision.is_due(after(seconds) - timedelta(microseconds=1))
    assert decision.is_due(after(seconds))


@pytest.mark.parametrize(
    ("before", "now", "reason", "seconds"),
    [
        (None, RESOLVED, Reason.OPENED, 30),
        (OPEN, RESOLVED, Reason.RESOLVED, 300),
        (RESOLVED, replace(OPEN, revision=3), Reason.REOPENED, 300),
        (OPEN, replace(OPEN, severity="critical"), Reason.ESCALATED, 0),
        (OPEN, replace(OPEN, severity="low"), Reason.UPDATED, 300),
        (OPEN, replace(OPEN, rule="b", title="B"), Reason.ROOT_CHANGED, 0),
        (OPEN, replace(OPEN, stage="c"), Reason.UPDATED, 300),
        (OPEN, replace(OPEN, status="retracted"), Reason.UPDATED, 300),
        (OPEN, replace(OPEN, status="acknowledged"), Reason.UPDATED, 300),
        (OPEN, replace(OPEN, status="merged", merged_into="inc-0"), Reason.MERGED, 0),
        (replace(OPEN, status="acknowledged"), OPEN, Reason.UPDATED, 300),
        (OPEN, replace(OPEN, count=9, revision=9), Reason.REPEATED, 4 * 3600),
    ],
)
def test_why_and_when_a_receiver_is_told(before: Incident | None, now: Incident, reason: Reason, seconds: int) -> None:
    decision = decided(before, now)
    assert (decision.reason, decision.at) == (reason, after(seconds))
    assert bool(decision.news) == (before is not None)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (None, replace(OPEN, status="merged")),
        (None, replace(OPEN, status="retracted")),
        (None, replace(OPEN, pending=True)),
        (RESOLVED, RESOLVED),
        (RESOLVED, replace(RESOLVED, count=7, revision=9)),
        (replace(OPEN, status="merged"), replace(OPEN, status="merged", revision=3, severity="low")),
        (replace(OPEN, status="acknowledged"), replace(OPEN, status="acknowledged", revision=3)),
    ],
)
def test_what_nobody_is_told(before: Incident | None, now: Incident) -> None:
    assert decided(before, now).reason is None


def test_a_receiver_that_edits_is_told_of_grown_counts_without_news() -> None:
    decision = decided(OPEN, replace(OPEN, count=9, revision=2), edits=True)
    assert (decision.reason, decision.at, decision.news) == (Reason.UPDATED, after(300), "")
    assert decided(OPEN, OPEN, edits=True).reason is Reason.REPEATED


def test_an_interval_of_zero_never_repeats() -> None:
    assert decided(OPEN, OPEN, replace(TIMINGS, repeat_interval_s=0)).reason is None
