"""When a receiver that keeps a record is notified: of every incident, and of every change of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from engine.model.incidents import Incident
from engine.model.notifications import IncidentChange, NotificationLog, Reason
from engine.route.decision import NOTHING, Decision, change_since, notification_log

GROWTH_INTERVAL_S = 10.0  # between two notifications of an incident of which only counts, times and evidence change


def needs_recording(
    last_log: NotificationLog | None, incident: Incident, now: datetime, growth_interval_s: float = GROWTH_INTERVAL_S
) -> Decision:
    """Decide whether, why and when a record is notified of `incident`: at once of a new incident and of a change, after
    `growth_interval_s` of growth. An incident that was over before it was recorded is recorded; a pending one is not.

    Args:
        last_log: the log of the last notification; None: there was none.
    """
    if incident.pending:
        return NOTHING
    if last_log is None:
        return Decision(Reason.OPENED, now)
    reason, news = change_since(last_log, incident)
    if reason is not None:
        return Decision(reason, now, news)
    if incident.revision == last_log.revision:
        return NOTHING
    return Decision(Reason.UPDATED, last_log.at + timedelta(seconds=growth_interval_s))


def recorded_changes(
    last_log: NotificationLog | None, revisions: Iterable[Incident], now: datetime
) -> tuple[IncidentChange, ...]:
    """Return the changes that `revisions`, oldest first, bring since `last_log`; without a log the first one opens it."""
    return tuple(_changes(last_log, revisions, now))


def _changes(last_log: NotificationLog | None, revisions: Iterable[Incident], now: datetime) -> Iterator[IncidentChange]:
    for revision in revisions:
        if revision.pending:
            continue
        reason, news = (Reason.OPENED, "") if last_log is None else change_since(last_log, revision)
        if reason is not None:
            yield IncidentChange(revision, reason, news)
        last_log = notification_log(revision, now, {})
