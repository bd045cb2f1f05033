"""What a record is told of: everything that is confirmed, at once."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from engine.model.incidents import Incident
from engine.model.notifications import Reason
from engine.route import Decision, needs_recording, notification_log, recorded_changes
from tests.unit.cli.incidents import incident

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
OPEN = incident(revision=1)


def decided(before: Incident | None, now: Incident) -> Decision:
    """Return the decision over `now` a second after `before` (or nothing) was written."""
    told = notification_log(before, NOON, {}) if before is not None else None
    return needs_recording(told, now, NOON + timedelta(seconds=1))


def test_what_is_new_is_written_at_once_whatever_has_become_of_it() -> None:
    for status in ("open", "resolved", "retracted", "merged"):
        decision = decided(None, replace(OPEN, status=status))
        assert (decision.reason, decision.at) == (Reason.OPENED, NOON + timedelta(seconds=1))


def test_what_is_not_confirmed_is_not_written() -> None:
    assert decided(None, replace(OPEN, pending=True)).reason is None


def test_a_change_is_written_at_once_and_mere_growth_a_little_later() -> None:
    worse = decided(OPEN, replace(OPEN, revision=2, status="resolved"))
    grown = decided(OPEN, replace(OPEN, revision=2, count=9))
    assert (worse.reason, worse.at) == (Reason.RESOLVED, NOON + timedelta(seconds=1))
    assert (grown.reason, grown.at) == (Reason.UPDATED, NOON + timedelta(seconds=10))


def test_what_has_not_changed_is_never_repeated() -> None:
    assert needs_recording(notification_log(OPEN, NOON, {}), OPEN, NOON + timedelta(days=9)).reason is None


def test_every_turn_between_two_writes_is_a_change_and_growth_is_none() -> None:
    revisions = [
        replace(OPEN, revision=1, pending=True),
        replace(OPEN, revision=2),
        replace(OPEN, revision=3, count=7),
        replace(OPEN, revision=4, severity="low"),
        replace(OPEN, revision=5, severity="low", status="resolved", why="quiet"),
        replace(OPEN, revision=6, severity="low"),
    ]
    changes = recorded_changes(None, revisions, NOON)
    assert [(change.incident.revision, change.reason.value) for change in changes] == [
        (2, "opened"),
        (4, "updated"),
        (5, "resolved"),
        (6, "reopened"),
    ]
    assert changes[2].news == "resolved (quiet)"
    later = recorded_changes(notification_log(revisions[3], NOON, {}), revisions[4:], NOON)
    assert later == changes[2:]
