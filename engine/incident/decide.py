"""The decision: from the alerts and the present incidents of a scope to the incidents that there should be. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from msgspec.structs import replace

from engine.incident.alert_groups import AlertGroup, alert_groups, ordered
from engine.incident.compose import IncidentContext, compose, evidence_ids, evidence_in_order, printed_settings
from engine.incident.dialects import applicable, spelled, spelled_command
from engine.incident.links import link_alerts
from engine.incident.platforms import LineSpan, fitted, place_of
from engine.incident.sign_in import is_secured, signed_in, signed_in_command
from engine.model.incidents import OTHERS, Alert, AlertKey, Evidence, Incident, RenderedStep, Roster
from engine.model.pictures import ClusterPicture
from engine.model.rules import SIGNS_IN, Plan
from engine.model.words import worded

NOT_JUDGED = "nobody judges it any longer"  # the end of the reason of an incident whose rule was removed

Lookup = Callable[[Sequence[str]], Mapping[str, Evidence]]
PictureLookup = Callable[[datetime], ClusterPicture | None]


def unseen(at: datetime) -> None:
    """Return None: the picture of a cluster that nobody asks."""


def decide(
    alerts: Mapping[AlertKey, tuple[Alert, ...]],
    incidents: Sequence[Incident],
    plan: Plan,
    roster: Roster,
    evidence: Lookup,
    pictures: PictureLookup = unseen,
) -> list[Incident]:
    """Return the new revisions of incidents, those of the oldest groups first; none for incidents that do not change.

    A group of alerts takes the oldest incident that has one of its alerts; other such incidents are `merged` into it. The
    incident of an entity that is no longer kept apart is merged into that of all the others. An incident without any alert left
    is `retracted`; if the rule of its root was removed it is `resolved`, as nothing contradicts it.

    Args:
        incidents: last revisions, oldest first, merged ones included.
        evidence: returns the evidence of event ids.
        pictures: returns the picture of the cluster at a time.
    """
    context = IncidentContext(plan, plan.rules(), roster, pictures)
    groups = [group for group in _groups(alerts, context) if not group.informs]
    ids, merged = _identities(groups, incidents, context)
    before = {incident.id: incident for incident in incidents}
    now = _with_evidence(groups, [compose(group, context, id_) for group, id_ in zip(groups, ids, strict=True)], evidence, plan)
    without_alerts = _without_alerts(incidents, {*ids, *merged}, context)
    folded = [replace(before[old], status="merged", merged_into=into, pending=False) for old, into in merged.items()]
    return [*_changed((*now, *folded, *without_alerts), before)]


def minor(
    alerts: Mapping[AlertKey, tuple[Alert, ...]], plan: Plan, roster: Roster, evidence: Lookup, pictures: PictureLookup = unseen
) -> list[Incident]:
    """Return the incidents that more matches would make, oldest first: those of rules that inform until they escalate."""
    context = IncidentContext(plan, plan.rules(), roster, pictures)
    groups = [group for group in _groups(alerts, context) if group.informs and _escalates(group, context)]
    return _with_evidence(groups, [compose(group, context, new_id(group.root)) for group in groups], evidence, plan)


def _groups(alerts: Mapping[AlertKey, tuple[Alert, ...]], context: IncidentContext) -> list[AlertGroup]:
    of_plan = ordered({key: of_key for key, of_key in alerts.items() if key[1] in context.rules})
    return alert_groups(link_alerts(of_plan, context.plan))


def _escalates(group: AlertGroup, context: IncidentContext) -> bool:
    return bool(context.rules[group.root.key[1]].escalate)


def new_id(root: Alert, again: int = 0) -> str:
    """Return the id of an incident that opens with `root`; it is never computed again later.

    Args:
        again: how many incidents have opened with `root` before.
    """
    parts = (*root.key[:2], *(f"{n}={v}" for n, v in root.key[2]), root.starts_at.astimezone(UTC).isoformat())
    text = "\x00".join((*parts, str(again)) if again else parts)
    return "inc-" + hashlib.sha256(text.encode()).hexdigest()[:10]


def _with_evidence(groups: Sequence[AlertGroup], incidents: Sequence[Incident], evidence: Lookup, plan: Plan) -> list[Incident]:
    """Return the incidents of groups with their evidence, which one query returns for all."""
    wanted = [evidence_ids(group) for group in groups]
    by_id = evidence(list(dict.fromkeys(event_id for ids in wanted for event_id in ids)))
    return [
        _proven(group, incident, evidence_in_order(ids, by_id), plan)
        for group, incident, ids in zip(groups, incidents, wanted, strict=True)
    ]


def _proven(group: AlertGroup, incident: Incident, evidence: tuple[Evidence, ...], plan: Plan) -> Incident:
    """Return an incident with its evidence, and its fix and its check as its listeners take them and in the spelling of who
    printed that of its own alerts."""
    alerts = (*group.firings, *group.stages)
    own = {event_id for alert in alerts for event_id in alert.evidence}
    own_events = [event for event in evidence if event.event_id in own]
    texts = [event.text for event in own_events]
    place = place_of(incident.labels, [event.source_id for event in own_events], texts)
    fix = spelled(incident.fix, texts, incident.labels, plan)
    fix = fitted(fix, place, LineSpan(incident.first_seen, incident.last_seen))
    verify = spelled_command(incident.verify, texts, incident.labels, plan)
    is_asked_with_login = f"{group.root.key[0]}.{SIGNS_IN}" in plan.context
    if is_asked_with_login or is_secured([event.text for event in evidence], printed_settings(alerts)):
        fix, verify = signed_in(fix), signed_in_command(verify)
    checks, references = (
        applicable(sentences, texts, incident.labels, plan) for sentences in (incident.next_checks, incident.references)
    )
    translations = _with_remarks(incident.translations, incident.fix, fix)
    proven = {"evidence": evidence, "fix": fix, "verify": verify, "next_checks": checks, "references": references}
    return replace(incident, **proven, translations=translations)


def _with_remarks(
    translations: Mapping[str, dict[str, str]], before: Sequence[RenderedStep], after: Sequence[RenderedStep]
) -> Mapping[str, dict[str, str]]:
    """Return the translations with those of the steps to whose words something was added."""
    added = {new.do: old.do for old, new in zip(before, after, strict=True) if new.do != old.do}
    return {
        language: texts | {new: texts[old] + new.removeprefix(old) for new, old in added.items() if old in texts}
        for language, texts in translations.items()
    }


def _identities(
    groups: Sequence[AlertGroup], incidents: Sequence[Incident], context: IncidentContext
) -> tuple[list[str], dict[str, str]]:
    """Return the incident id of each group, and the incidents that are merged into another: {id: surviving id}."""
    of_key = _by_key(groups)
    of_group: dict[int, str] = {}
    claims: list[tuple[str, int]] = []
    for incident in incidents:
        if incident.status == "merged":
            continue
        holders = _holders(incident, of_key, context)
        free = [n for n in holders if n not in of_group]
        if free:
            of_group[min(free, key=lambda n: _mismatch(groups[n], incident, n))] = incident.id
        elif holders or (holders := _holders_of_others(incident, of_key)):
            claims.append((incident.id, holders[0]))
    used = {*of_group.values(), *(folded for folded, _ in claims)}
    ids = [of_group.get(n) or _unused_id(group.root, used) for n, group in enumerate(groups)]
    return ids, {folded: ids[n] for folded, n in claims}


def _mismatch(group: AlertGroup, incident: Incident, number: int) -> tuple[bool, bool, int]:
    """Return a sort key of groups for an incident: first the one it opened with, then one with its root key."""
    return new_id(group.root) != incident.id, group.root.key != incident.key, number


def _unused_id(root: Alert, used: Container[str]) -> str:
    """Return an unused id of an incident that opens with `root`.

    The first one may be used by an incident that opened with it and has other alerts by now.
    """
    return next(id_ for id_ in (new_id(root, n) for n in count()) if id_ not in used)


def _by_key(groups: Sequence[AlertGroup]) -> Mapping[AlertKey, Mapping[int, Sequence[Alert]]]:
    """Return the alerts by key and by position of their group, so that an incident is compared with few groups."""
    by_key: dict[AlertKey, dict[int, list[Alert]]] = {}
    for n, group in enumerate(groups):
        for alert in group.alerts():
            by_key.setdefault(alert.key, {}).setdefault(n, []).append(alert)
    return by_key


def _holders(
    incident: Incident, of_key: Mapping[AlertKey, Mapping[int, Sequence[Alert]]], context: IncidentContext
) -> list[int]:
    """Return the positions of groups that have an alert of `incident`: equal key, overlapping time."""
    holders: set[int] = set()
    for key in incident.alerts:
        for n, alerts in of_key.get(key, {}).items():
            if n not in holders and any(_overlaps(incident, alert, context) for alert in alerts):
                holders.add(n)
    return sorted(holders)


def _holders_of_others(incident: Incident, of_key: Mapping[AlertKey, Mapping[int, Sequence[Alert]]]) -> list[int]:
    """Return the position of the group of all others, for an incident whose entity is no longer kept apart."""
    scope, rule_id, entity = incident.key
    others = tuple((label, value if label == "cluster" else OTHERS) for label, value in entity)
    return sorted(of_key.get((scope, rule_id, others), {}))


def _overlaps(incident: Incident, alert: Alert, context: IncidentContext) -> bool:
    window = timedelta(seconds=context.rules[alert.key[1]].reopen_window_s)
    start, end = _span(incident)
    if start is None or end is None or not alert.dated:
        return True
    return alert.starts_at - window <= end and start <= (alert.ends_at or alert.last_seen) + window


def _span(incident: Incident) -> tuple[datetime | None, datetime | None]:
    return incident.first_seen, max((t for t in (incident.last_seen, incident.resolved_at) if t), default=None)


def _without_alerts(incidents: Sequence[Incident], present: set[str], context: IncidentContext) -> Iterator[Incident]:
    for incident in incidents:
        if incident.id in present or incident.status in ("merged", "retracted"):
            continue
        if incident.key[1] in context.rules:
            yield replace(incident, status="retracted", pending=False, why=worded("later lines contradict it"))
        elif incident.pending:
            yield replace(incident, status="retracted", pending=False, why=_not_judged(incident.key[1], context))
        elif incident.status != "resolved":
            yield replace(
                incident, status="resolved", resolved_at=incident.last_seen, why=_not_judged(incident.key[1], context)
            )


def _not_judged(rule: str, context: IncidentContext) -> str:
    successor = next((other.id for other in context.rules.values() if rule in other.replaces), None)
    if successor is None:
        return worded("its rule `{rule}` was removed: nobody judges it any longer", rule=rule)
    return worded("its rule `{rule}` is `{successor}` now: nobody judges it any longer", rule=rule, successor=successor)


def _changed(now: Sequence[Incident], before: Mapping[str, Incident]) -> Iterator[Incident]:
    for incident in now:
        earlier = before.get(incident.id)
        if earlier is None:
            yield replace(incident, revision=1)
            continue
        revised = replace(incident, revision=earlier.revision, opened_at=earlier.opened_at)
        if revised != earlier:
            yield replace(revised, revision=earlier.revision + 1)
