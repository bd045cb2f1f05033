"""Backfill: incidents that were old when they were first seen are stored, and notified in one digest, not one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.model.incidents import Incident, Symptom
from engine.model.notifications import DIGEST_RULE
from engine.model.phrases import lasting
from engine.model.rules import SEVERITIES
from engine.model.words import worded
from engine.route.summary import number_of_incidents, summary_incident


def is_backfill(incident: Incident, known_at: datetime, max_age_s: float) -> bool:
    """Return whether the newest event of `incident` was older than `max_age_s` (0: no limit) when first seen, at `known_at`.

    An incident whose lines have no time is never backfill.
    """
    if not max_age_s or incident.last_seen is None:
        return False
    return incident.last_seen < known_at - timedelta(seconds=max_age_s)


def digest(id: str, members: Sequence[Incident], max_age_s: float) -> Incident:
    """Return the summary incident of `members` (at least one), with a symptom for each: open ones first, then by severity."""
    incidents = number_of_incidents(len(members))
    still_open = sum(member.status == "open" for member in members)
    return summary_incident(
        members,
        id=id,
        rule=DIGEST_RULE,
        title=worded("{incidents} from before: {number:,} still open", incidents=incidents, number=still_open),
        cause=worded(
            "Their last signs were more than {span} old when they were first seen, so they are listed here and not sent one by"
            " one (notify_max_age).",
            span=lasting(timedelta(seconds=max_age_s)),
        ),
        symptoms=[_symptom(member) for member in sorted(members, key=_urgency)],
    )


def _symptom(incident: Incident) -> Symptom:
    severity, status = incident.severity, incident.status
    title = worded("{severity}, {status}: {title}", severity=severity, status=status, title=incident.title)
    return Symptom(incident.rule, title, incident.count, incident.labels, incident.first_seen)


def _urgency(incident: Incident) -> tuple[bool, int, float, str]:
    newest = -incident.last_seen.timestamp() if incident.last_seen else 0.0
    return incident.status != "open", -SEVERITIES.index(incident.severity), newest, incident.id
