"""Decide whether a receiver is notified of an incident, why, and when at the earliest: a pure function of its last
notification."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from engine.model.incidents import Incident
from engine.model.notifications import NotificationLog, Reason
from engine.model.phrases import lasting
from engine.model.routes import Timings
from engine.model.rules import SEVERITIES
from engine.model.words import worded

SETTLE_S = 20.0  # how long an incident waits for others that may explain it
_ENDED = frozenset(("resolved", "retracted", "merged"))
_AT_ONCE = frozenset((Reason.ESCALATED, Reason.ROOT_CHANGED, Reason.MERGED))  # they change the reader's next action


class Decision(Struct, frozen=True):
    """Notify for `reason` at `at` or later; `reason` None: do not notify. `news`: what changed, in one sentence. `by_person`: a
    person changed it, so no silence and no time interval holds it back from those who were notified before."""

    reason: Reason | None = None
    at: datetime | None = None
    news: str = ""
    by_person: bool = False

    def is_due(self, now: datetime) -> bool:
        """Return whether there is a notification and its time has come."""
        return self.reason is not None and self.at is not None and self.at <= now


NOTHING = Decision()


def notification_log(
    incident: Incident, at: datetime, marks: Mapping[str, str], digest: str = "", storm: str = ""
) -> NotificationLog:
    """Return the log of a notification of `incident` at `at`, in a message of its own or in the digest with the id `digest`;
    `storm` is the storm that it is part of."""
    return NotificationLog(
        incident.rule,
        incident.status,
        incident.severity,
        at,
        incident.stage,
        incident.revision,
        marks,
        digest,
        storm,
        incident.owner,
        _acts(incident),
    )


def decide_notification(
    last_log: NotificationLog | None,
    incident: Incident,
    timings: Timings,
    known_at: datetime,
    *,
    explained: bool = False,
    edits: bool = False,
) -> Decision:
    """Decide whether, why and when to notify a receiver of `incident`.

    An incident that was merged or retracted before the first notification is never notified. A change waits until
    `group_interval` after the last notification, except a worse severity, another root, a merge, and what a person did.

    Args:
        last_log: the last notification of the receiver; None: none yet.
        known_at: when the notifier first saw a reason to notify; the first notification waits from then on.
        explained: alerts of other rules may turn out to be the cause, so the first notification waits for them (SETTLE_S).
        edits: the receiver updates one message, so it also gets grown counts and new evidence.
    """
    if incident.pending:
        return NOTHING
    if last_log is None:
        return _opening(incident, known_at + timedelta(seconds=max(timings.group_wait_s, SETTLE_S if explained else 0.0)))
    reason, news = change_since(last_log, incident)
    is_acted_on = edits and incident.status != "merged" and _acts(incident) != last_log.acts
    if reason is None and is_acted_on:  # the message names the edition that a click on it is about
        return Decision(Reason.UPDATED, last_log.at, by_person=True)
    if reason is None and edits and incident.revision > last_log.revision and incident.status != "merged":
        reason = Reason.UPDATED
    if reason is None:
        return _repetition(incident, last_log.at, timings)
    by_person = _is_by_person(last_log, incident)
    wait = 0.0 if reason in _AT_ONCE or by_person else timings.group_interval_s
    return Decision(reason, last_log.at + timedelta(seconds=wait), news, by_person)


def _opening(incident: Incident, due_at: datetime) -> Decision:
    if incident.status in ("merged", "retracted"):
        return NOTHING
    return Decision(Reason.OPENED, due_at)


def _repetition(incident: Incident, last: datetime, timings: Timings) -> Decision:
    if incident.status != "open" or not timings.repeat_interval_s:
        return NOTHING
    at = last + timedelta(seconds=timings.repeat_interval_s)
    return Decision(Reason.REPEATED, at, worded("still open, {span} after the last message", span=lasting(at - last)))


def change_since(last_log: NotificationLog, incident: Incident) -> tuple[Reason | None, str]:
    """Return the most important change since `last_log` with its sentence; (None, "") when there is none."""
    if incident.status != last_log.status:
        return _new_status(last_log, incident)
    if incident.status == "merged":
        return None, ""
    if incident.rule != last_log.rule:
        return Reason.ROOT_CHANGED, worded("the root cause is another one now: {title}", title=incident.title)
    if incident.severity != last_log.severity:
        worse = SEVERITIES.index(incident.severity) > SEVERITIES.index(last_log.severity)
        return (Reason.ESCALATED if worse else Reason.UPDATED), worded(
            "severity is {severity} now, was {earlier}", severity=incident.severity, earlier=last_log.severity
        )
    if incident.stage != last_log.stage:
        return Reason.UPDATED, worded(
            "the same trouble has reached its next stage ({rule}); the fix is new", rule=incident.stage
        )
    if incident.owner != last_log.owner:
        return Reason.UPDATED, _new_owner(last_log.owner, incident.owner)
    return None, ""


def _acts(incident: Incident) -> int:
    return incident.handling.acts if incident.handling is not None else 0


def _is_by_person(last_log: NotificationLog, incident: Incident) -> bool:
    """Return whether a person changed the status or the owner since `last_log`. The owner also goes when newer evidence ends an
    acknowledgement, which is no act."""
    handling = incident.handling
    if handling is None:
        return False
    is_state = handling.state == incident.status or (not handling.state and incident.status == "open")
    is_owner = incident.owner != last_log.owner and _acts(incident) != last_log.acts
    return is_owner or (incident.status != last_log.status and bool(handling.by) and is_state)


def _new_status(last_log: NotificationLog, incident: Incident) -> tuple[Reason, str]:
    if incident.status == "merged":
        return Reason.MERGED, worded("part of another incident now: {id}", id=incident.merged_into)
    if incident.status == "resolved":
        return Reason.RESOLVED, _with_why(worded("resolved"), incident.why)
    if incident.status == "retracted":
        return Reason.UPDATED, _with_why(worded("taken back"), incident.why)
    if last_log.status in _ENDED:
        return Reason.REOPENED, _with_why(worded("open again"), incident.why)
    return Reason.UPDATED, _with_why(worded("{status} now", status=incident.status), incident.why)


def _new_owner(earlier: str, owner: str) -> str:
    return worded("{person} has it now", person=owner) if owner else worded("{person} has it no more", person=earlier)


def _with_why(change: str, why: str) -> str:
    return worded("{change} ({why})", change=change, why=why) if why else change
