"""Incidents that were old when they were first seen: kept, and told at once in a digest instead of one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.model.incidents import Incident, Symptom
from engine.model.notifications import DIGEST_RULE
from engine.model.phrases import lasting
from engine.model.rules import SEVERITIES
from engine.route.standing_in import standing_for


def is_backfill(incident: Incident, known_at: datetime, max_age_s: float) -> bool:
    """Say whether the newest sign of `incident` was older than `max_age_s` (0: no limit) when it was first seen, at `known_at`.

    One whose lines bear no time is as new as its being seen.
    """
    if not max_age_s or incident.last_seen is None:
        return False
    return incident.last_seen < known_at - timedelta(seconds=max_age_s)


def digest(id: str, members: Sequence[Incident], max_age_s: float) -> Incident:
    """Return the incident that stands for `members` (at least one): the open and severe ones first among its symptoms."""
    number = "1 incident" if len(members) == 1 else f"{len(members)} incidents"
    still_open = sum(member.status == "open" for member in members)
    return standing_for(
        members,
        id=id,
        rule=DIGEST_RULE,
        title=f"{number} from before: {still_open} still open",
        cause=f"Their last signs were more than {lasting(timedelta(seconds=max_age_s))} old when they were first seen,"
        " so they are told here and not one by one (notify_max_age).",
        symptoms=[_symptom(member) for member in sorted(members, key=_urgency)],
    )


def _symptom(incident: Incident) -> Symptom:
    title = f"{incident.severity}, {incident.status}: {incident.title}"
    return Symptom(incident.rule, title, incident.count, incident.labels, incident.first_seen)


def _urgency(incident: Incident) -> tuple[bool, int, float, str]:
    newest = -incident.last_seen.timestamp() if incident.last_seen else 0.0
    return incident.status != "open", -SEVERITIES.index(incident.severity), newest, incident.id
