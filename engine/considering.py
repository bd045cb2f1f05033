"""Decide which rules were considered for an incident and are no part of it, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from engine.model.considered import APART, INFORMS, TAKEN_BACK, UNCONFIRMED, ConsideredRule
from engine.model.incidents import EVER, Alert, AlertKey, Incident

MOST_RULES = 10
_REASONS = (APART, UNCONFIRMED, INFORMS, TAKEN_BACK)  # in the order of the list
_REASON_OF_STATE = {"pending": UNCONFIRMED, "retracted": TAKEN_BACK}


class IncidentSpan(Struct, frozen=True):
    """When an incident went on, and its state as the job stored it. `end` is None when its lines have no times."""

    id: str
    state: str
    begin: datetime | None
    end: datetime | None
    merged_into: str | None = None


def entity_names(incident: Incident) -> frozenset[tuple[str, str]]:
    """Return the labels that tell the entity of an incident from the rest of its cluster; empty when it is all of it."""
    return frozenset((name, value) for name, value in incident.key[2] if name != "cluster" and not value.startswith("?"))


def considered_rules(
    incident: Incident, alerts: Iterable[Alert], incidents: Mapping[AlertKey, Sequence[IncidentSpan]]
) -> tuple[ConsideredRule, ...]:
    """Return the rules with `alerts` about the entity of `incident` that are no part of it, at most MOST_RULES: those of other
    incidents first, then by time.

    Args:
        alerts: alerts of the scope in the time of the incident.
        incidents: by key, the incidents that had an alert of it.
    """
    names, considered = entity_names(incident), dict[tuple[str, str, str], ConsideredRule]()
    for alert in sorted(alerts, key=lambda alert: (alert.starts_at, alert.key)):
        if alert.key in incident.alerts or not names & {*alert.key[2], *alert.labels.items()}:
            continue
        reason, other = _reason(alert, incident, incidents.get(alert.key, ()))
        if not reason:
            continue
        place = alert.key[1], reason, other
        earlier = considered.get(place)
        labels = {**alert.labels, **dict(alert.key[2])}
        first = earlier or ConsideredRule(alert.key[1], reason, 0, labels, alert.starts_at, other)
        considered[place] = replace(first, count=first.count + alert.count)
    ranked = sorted(considered.values(), key=lambda item: (_REASONS.index(item.reason), item.first_seen, item.rule))
    return tuple(ranked[:MOST_RULES])


def _reason(alert: Alert, incident: Incident, incidents: Sequence[IncidentSpan]) -> tuple[str, str]:
    """Return why an alert is no part of `incident`, and the incident that it is part of; both empty when it is part of it, or
    when that is not known."""
    holders = [span for span in incidents if _overlaps(span, alert)]
    if any(incident.id in (span.id, span.merged_into) for span in holders):
        return "", ""
    if holders:
        holder = min(holders, key=lambda span: span.state in ("merged", "retracted"))  # min takes the first of equals
        return _REASON_OF_STATE.get(holder.state, APART), holder.merged_into or holder.id
    return (INFORMS, "") if alert.severity == "info" and alert.status != "retracted" else ("", "")


def _overlaps(span: IncidentSpan, alert: Alert) -> bool:
    if span.begin is None or span.end is None or not alert.dated:
        return True
    return span.begin <= (alert.ends_at or EVER) and alert.starts_at <= span.end
