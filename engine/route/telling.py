"""Whether a receiver has to be told of an incident, why, and not before when: a pure decision over what it was told last."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from engine.model.incidents import Incident
from engine.model.notifications import NotificationLog, Reason
from engine.model.phrases import lasting
from engine.model.routes import Timings
from engine.model.rules import SEVERITIES

SETTLE_S = 20.0  # how long an incident that others may explain waits for them
_ENDED = frozenset(("resolved", "retracted", "merged"))
_AT_ONCE = frozenset((Reason.ESCALATED, Reason.ROOT_CHANGED, Reason.MERGED))  # they change what the reader does next


class Decision(Struct, frozen=True):
    """Tell for `reason` at `at` or later; `reason` None: nothing to tell. `news`: what changed, in one sentence."""

    reason: Reason | None = None
    at: datetime | None = None
    news: str = ""

    def is_due(self, now: datetime) -> bool:
        """Say whether it is time."""
        return self.reason is not None and self.at is not None and self.at <= now


NOTHING = Decision()


def knows(incident: Incident, at: datetime, marks: Mapping[str, str], digest: str = "") -> NotificationLog:
    """Return what a receiver knows that was told of `incident` at `at`, by itself or in the `digest` of this id."""
    return NotificationLog(
        incident.rule, incident.status, incident.severity, at, incident.stage, incident.revision, marks, digest
    )


def needs_telling(
    told: NotificationLog | None,
    incident: Incident,
    timings: Timings,
    known_at: datetime,
    *,
    explained: bool = False,
    edits: bool = False,
) -> Decision:
    """Decide whether, why and when to tell a receiver of `incident`.

    Args:
        told: what it was told last; None: nothing yet.
        known_at: when it was first seen that there is something to tell; the first notification waits from there.
        explained: other rules may turn out to be the cause, so the first notification waits for them (SETTLE_S).
        edits: the receiver keeps one message true, so grown counts and new evidence are told too.

    An incident that ended as merged or retracted before anybody was told is nobody's business. A change waits until
    `group_interval` after the last notification, except a worse severity, another root and a merge.
    """
    if incident.pending:
        return NOTHING
    if told is None:
        return _opening(incident, known_at + timedelta(seconds=max(timings.group_wait_s, SETTLE_S if explained else 0.0)))
    reason, news = _change(told, incident)
    if reason is None and edits and incident.revision > told.revision and incident.status != "merged":
        reason = Reason.UPDATED
    if reason is None:
        return _repetition(incident, told.at, timings)
    wait = 0.0 if reason in _AT_ONCE else timings.group_interval_s
    return Decision(reason, told.at + timedelta(seconds=wait), news)


def _opening(incident: Incident, at: datetime) -> Decision:
    if incident.status in ("merged", "retracted"):
        return NOTHING
    return Decision(Reason.OPENED, at)


def _repetition(incident: Incident, last: datetime, timings: Timings) -> Decision:
    if incident.status != "open" or not timings.repeat_interval_s:
        return NOTHING
    at = last + timedelta(seconds=timings.repeat_interval_s)
    return Decision(Reason.REPEATED, at, f"still open, {lasting(at - last)} after the last message")


def _change(told: NotificationLog, incident: Incident) -> tuple[Reason | None, str]:
    """Return what changed most, with its sentence."""
    if incident.status != told.status:
        return _new_status(told, incident)
    if incident.status == "merged":
        return None, ""
    if incident.rule != told.rule:
        return Reason.ROOT_CHANGED, f"the root cause is another one now: {incident.title}"
    if incident.severity != told.severity:
        worse = SEVERITIES.index(incident.severity) > SEVERITIES.index(told.severity)
        return (Reason.ESCALATED if worse else Reason.UPDATED), f"severity is {incident.severity} now, was {told.severity}"
    if incident.stage != told.stage:
        return Reason.UPDATED, f"the same trouble has reached its next stage ({incident.stage}); the fix is new"
    return None, ""


def _new_status(told: NotificationLog, incident: Incident) -> tuple[Reason, str]:
    why = f" ({incident.why})" if incident.why else ""
    if incident.status == "merged":
        return Reason.MERGED, f"part of another incident now: {incident.merged_into}"
    if incident.status == "resolved":
        return Reason.RESOLVED, f"resolved{why}"
    if incident.status == "retracted":
        return Reason.UPDATED, f"taken back{why}"
    if told.status in _ENDED:
        return Reason.REOPENED, f"open again{why}"
    return Reason.UPDATED, f"{incident.status} now{why}"
