"""Find the alerts and incidents by which is decided what else was considered for an incident; bounded however much there is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace
from sqlalchemy import Connection, and_, select

from engine.codec import loads
from engine.considering import IncidentSpan, considered_rules, entity_names
from engine.model.considered import ConsideredRule
from engine.model.incidents import EVER, Alert, AlertKey, Incident, extent
from engine.store.ledger import REMOVED, key_text
from engine.store.schema import alerts, in_chunks, incident_keys, incidents, text
from engine.store.search import incidents_of

BESIDE = timedelta(minutes=1)  # how far from the time of an incident an alert may be
LATEST = timedelta(days=1)  # after the incident: alerts that ended later are left out, except those that have not ended
MOST_ALERTS = 500  # that are read


def considered_of(connection: Connection, incident: Incident) -> tuple[ConsideredRule, ...]:
    """Return the rules that were considered for an incident and are no part of it (see considering.considered_rules); none when
    its lines have no times, or when its entity is its whole cluster."""
    when = extent(incident)
    if when is None or not entity_names(incident):
        return ()
    beside = _alerts_within(connection, incident.key[0], *when)
    keys = {alert.key for alert in beside}.difference(incident.alerts)
    considered = considered_rules(incident, beside, _spans(connection, incident.key[0], keys))
    others = sorted({rule.incident for rule in considered if rule.incident})
    of_id = {other.id: other for other in incidents_of(connection, others)}
    return tuple(_titled(rule, of_id[rule.incident]) if rule.incident in of_id else rule for rule in considered)


def _titled(rule: ConsideredRule, of: Incident) -> ConsideredRule:
    titles = {language: texts[of.title] for language, texts in of.translations.items() if of.title in texts}
    return replace(rule, title=of.title, translations=titles)


def _alerts_within(connection: Connection, scope: str, begin: datetime, end: datetime) -> Sequence[Alert]:
    """Return the alerts beside an incident that have ended, then those that have not, at most MOST_ALERTS of each."""
    table = alerts.c
    ended = and_(table.until >= text(begin - BESIDE), table.until <= text(end + LATEST))
    chosen = select(table.body).where(table.scope == scope, table.starts_at <= text(end + BESIDE), table.body != REMOVED)
    ordered = chosen.order_by(table.until, table.rule, table.entity).limit(MOST_ALERTS)
    return [
        loads(body, Alert)
        for condition in (ended, table.until >= text(EVER))  # one query of both would not use the index for the times
        for body in connection.scalars(ordered.where(condition))
    ]


def _spans(connection: Connection, scope: str, keys: set[AlertKey]) -> Mapping[AlertKey, Sequence[IncidentSpan]]:
    """Return the incidents that had an alert of one of `keys`, by key, in order of opening."""
    key_by_text, spans = {key_text(key): key for key in keys}, defaultdict[AlertKey, list[IncidentSpan]](list)
    table = incidents.c
    columns = (incident_keys.c.key, table.id, table.state, table.first_seen, table.until, table.merged_into)
    joined = incident_keys.join(incidents, table.id == incident_keys.c.incident)
    for chunk in in_chunks(sorted(key_by_text)):
        query = select(*columns).select_from(joined).where(incident_keys.c.scope == scope, incident_keys.c.key.in_(chunk))
        for row in connection.execute(query.order_by(table.number)):
            begin, end = (datetime.fromisoformat(stamp) if stamp else None for stamp in (row.first_seen, row.until))
            spans[key_by_text[row.key]].append(IncidentSpan(row.id, row.state, begin, end, row.merged_into))
    return spans
