"""The decision: from all alerts of a scope and the incidents there are, the incidents there should be. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from msgspec.structs import replace

from engine.incident.alert_groups import AlertGroup, alert_groups, ordered
from engine.incident.compose import Circumstances, compose, evidence_ids, proven
from engine.incident.links import link_alerts
from engine.model.incidents import OTHERS, Alert, AlertKey, Evidence, Incident, Roster
from engine.model.rules import Plan

NOT_JUDGED = "nobody judges it any longer"  # how the reason of an incident ends whose rule is gone

Lookup = Callable[[Sequence[str]], Mapping[str, Evidence]]


def decide(
    alerts: Mapping[AlertKey, tuple[Alert, ...]], incidents: Sequence[Incident], plan: Plan, roster: Roster, evidence: Lookup
) -> list[Incident]:
    """Return the new revisions of incidents, oldest trouble first; nothing for what stays as it is.

    A trouble adopts the oldest incident that holds one of its alerts; other incidents that do become `merged` into it, and that
    of an entity which is not kept apart any more into that of all the others. An incident none of whose alerts exist any longer
    is `retracted`; one whose root's rule is gone is `resolved`, for nobody can say that it was not so.

    Args:
        incidents: last revisions, oldest first, merged ones included.
        evidence: finds the evidence of event ids.
    """
    around = Circumstances(plan, plan.rules(), roster)
    found = [trouble for trouble in _troubles(alerts, around) if not trouble.informs]
    ids, merged = _identities(found, incidents, around)
    before = {incident.id: incident for incident in incidents}
    now = _proven(found, [compose(trouble, around, id_) for trouble, id_ in zip(found, ids, strict=True)], evidence)
    gone = _gone(incidents, {*ids, *merged}, around)
    folded = [replace(before[old], status="merged", merged_into=into, pending=False) for old, into in merged.items()]
    return [*_changed((*now, *folded, *gone), before)]


def minor(alerts: Mapping[AlertKey, tuple[Alert, ...]], plan: Plan, roster: Roster, evidence: Lookup) -> list[Incident]:
    """Return what would be an incident if there were more of it, oldest first: of a rule that informs until it escalates."""
    around = Circumstances(plan, plan.rules(), roster)
    found = [trouble for trouble in _troubles(alerts, around) if trouble.informs and _escalates(trouble, around)]
    return _proven(found, [compose(trouble, around, new_id(trouble.root)) for trouble in found], evidence)


def _troubles(alerts: Mapping[AlertKey, tuple[Alert, ...]], around: Circumstances) -> list[AlertGroup]:
    known = ordered({key: told for key, told in alerts.items() if key[1] in around.rules})
    return alert_groups(link_alerts(known, around.plan))


def _escalates(trouble: AlertGroup, around: Circumstances) -> bool:
    return bool(around.rules[trouble.root.key[1]].escalate)


def new_id(root: Alert, again: int = 0) -> str:
    """Return the id of an incident that opens with `root`: fixed then, never recomputed. `again`: how many did so before."""
    named = (*root.key[:2], *(f"{n}={v}" for n, v in root.key[2]), root.starts_at.astimezone(UTC).isoformat())
    said = "\x00".join((*named, str(again)) if again else named)
    return "inc-" + hashlib.sha256(said.encode()).hexdigest()[:10]


def _proven(found: Sequence[AlertGroup], incidents: Sequence[Incident], evidence: Lookup) -> list[Incident]:
    """Return the incidents of troubles with their evidence; it is asked for once: in SQL each question costs."""
    wanted = [evidence_ids(trouble) for trouble in found]
    known = evidence(list(dict.fromkeys(event_id for ids in wanted for event_id in ids)))
    return [replace(incident, evidence=proven(ids, known)) for incident, ids in zip(incidents, wanted, strict=True)]


def _identities(
    found: Sequence[AlertGroup], incidents: Sequence[Incident], around: Circumstances
) -> tuple[list[str], dict[str, str]]:
    """Return the id of each trouble, and the incidents that were folded into another: {id: surviving id}."""
    of_key = _by_key(found)
    taken: dict[int, str] = {}
    claims: list[tuple[str, int]] = []
    for incident in incidents:
        if incident.status == "merged":
            continue
        holders = _holders(incident, of_key, around)
        free = [n for n in holders if n not in taken]
        if free:
            taken[min(free, key=lambda n: _strangeness(found[n], incident, n))] = incident.id
        elif holders or (holders := _holders_of_others(incident, of_key)):
            claims.append((incident.id, holders[0]))
    used = {*taken.values(), *(folded for folded, _ in claims)}
    ids = [taken.get(n) or _unused_id(trouble.root, used) for n, trouble in enumerate(found)]
    return ids, {folded: ids[n] for folded, n in claims}


def _strangeness(trouble: AlertGroup, incident: Incident, number: int) -> tuple[bool, bool, int]:
    """Return how much less than others a trouble is what `incident` was opened for, or is about."""
    return new_id(trouble.root) != incident.id, trouble.root.key != incident.key, number


def _unused_id(root: Alert, used: Container[str]) -> str:
    """Return the id of an incident that opens with `root`; another one when the incident that once did is about something else
    by now."""
    return next(id_ for id_ in (new_id(root, n) for n in count()) if id_ not in used)


def _by_key(found: Sequence[AlertGroup]) -> Mapping[AlertKey, Mapping[int, Sequence[Alert]]]:
    """Return the troubles that each key has alerts in, with these: else every incident would be compared with every trouble."""
    known: dict[AlertKey, dict[int, list[Alert]]] = {}
    for n, trouble in enumerate(found):
        for alert in trouble.alerts():
            known.setdefault(alert.key, {}).setdefault(n, []).append(alert)
    return known


def _holders(incident: Incident, of_key: Mapping[AlertKey, Mapping[int, Sequence[Alert]]], around: Circumstances) -> list[int]:
    """Return the troubles with an alert that `incident` was told for: same key, overlapping time."""
    holders: set[int] = set()
    for key in incident.alerts:
        for n, alerts in of_key.get(key, {}).items():
            if n not in holders and any(_overlaps(incident, alert, around) for alert in alerts):
                holders.add(n)
    return sorted(holders)


def _holders_of_others(incident: Incident, of_key: Mapping[AlertKey, Mapping[int, Sequence[Alert]]]) -> list[int]:
    """Return the trouble that an incident is a part of by now whose entity is not kept apart any more."""
    scope, rule_id, entity = incident.key
    others = tuple((label, value if label == "cluster" else OTHERS) for label, value in entity)
    return sorted(of_key.get((scope, rule_id, others), {}))


def _overlaps(incident: Incident, alert: Alert, around: Circumstances) -> bool:
    window = timedelta(seconds=around.rules[alert.key[1]].reopen_window_s)
    start, end = _span(incident)
    if start is None or end is None or not alert.dated:
        return True
    return alert.starts_at - window <= end and start <= (alert.ends_at or alert.last_seen) + window


def _span(incident: Incident) -> tuple[datetime | None, datetime | None]:
    return incident.first_seen, max((t for t in (incident.last_seen, incident.resolved_at) if t), default=None)


def _gone(incidents: Sequence[Incident], kept: set[str], around: Circumstances) -> Iterator[Incident]:
    for incident in incidents:
        if incident.id in kept or incident.status in ("merged", "retracted"):
            continue
        if incident.key[1] in around.rules:
            yield replace(incident, status="retracted", pending=False, why="later lines contradict it")
        elif incident.pending:
            yield replace(incident, status="retracted", pending=False, why=_not_judged(incident.key[1], around))
        elif incident.status != "resolved":
            yield replace(incident, status="resolved", resolved_at=incident.last_seen, why=_not_judged(incident.key[1], around))


def _not_judged(rule: str, around: Circumstances) -> str:
    successor = next((each.id for each in around.rules.values() if rule in each.replaces), None)
    return f"its rule `{rule}` {f'is `{successor}` now' if successor else 'was removed'}: {NOT_JUDGED}"


def _changed(now: Sequence[Incident], before: Mapping[str, Incident]) -> Iterator[Incident]:
    for incident in now:
        earlier = before.get(incident.id)
        if earlier is None:
            yield replace(incident, revision=1)
            continue
        kept = replace(incident, revision=earlier.revision, opened_at=earlier.opened_at)
        if earlier.status == "acknowledged" and kept.status == "open":
            kept = replace(kept, status="acknowledged")  # a person's word stands until the trouble is over
        if kept != earlier:
            yield replace(kept, revision=earlier.revision + 1)
