"""Remove old incidents from the store, with everything that belongs only to them.

Correlation may repeat an old alert at any time, so a removed alert keeps its row, without a body: it can never open an incident
again. The store does not record which alerts an incident is made of; they are those of its keys in its time. So two incidents
that share a key and are near to each other in time are removed together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Select, and_, delete, func, or_, select, update

from engine.codec import loads
from engine.model.incidents import Incident
from engine.model.notifications import DeliveryState
from engine.store import facts, schema
from engine.store.acts import shown_state
from engine.store.ledger import REMOVED, entity_text

NEAR = timedelta(days=1)
_OVER = ("resolved", "retracted")
_UNSENT = (DeliveryState.QUEUED.value, DeliveryState.SENDING.value, DeliveryState.RETRY_LATER.value, DeliveryState.FOLDED.value)
_INCIDENT_TABLES = (
    schema.incident_keys,
    schema.deliveries,
    schema.outbox,
    schema.attempts,
    schema.searchable,
    schema.incident_labels,
    schema.handlings,
)
_ALWAYS = (datetime.min.replace(tzinfo=UTC) + NEAR, datetime.max.replace(tzinfo=UTC) - NEAR)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Remove at most `limit` incidents that are over, by the logs and as they are shown, and that neither the logs nor a person
    changed since `before`; return how many were removed.

    Incidents merged into a removed one go with it; silences from before that time go too. Never removed are open
    incidents, incidents with a notification still to be sent, the incident that changed last, and the last act: its revision
    and the number of the act are the marks that readers have read up to.
    """
    candidates = _candidates(connection, before, limit)
    removed = removable(candidates, _neighbours(connection, candidates))
    for incident in removed:
        _remove_alerts(connection, incident)
    _remove_evidence(connection, removed)
    _forget(connection, [incident.id for incident in removed])
    _remove_acts(connection)
    facts.prune(connection, schema.text(before))
    connection.execute(delete(schema.silences).where(schema.silences.c.ends_at < schema.text(before)))
    return len(removed)


def removable(candidates: Sequence[Incident], incidents: Iterable[Incident]) -> list[Incident]:
    """Return the `candidates` that share no key with a nearby incident that stays. Pure."""
    all_incidents, selected = list(incidents), {incident.id: incident for incident in candidates}
    while True:
        staying = [incident for incident in all_incidents if incident.id not in selected]
        remaining = {
            id_: incident for id_, incident in selected.items() if not any(_near(incident, other) for other in staying)
        }
        if len(remaining) == len(selected):
            return list(remaining.values())
        selected = remaining


def _near(incident: Incident, other: Incident) -> bool:
    if incident.key[0] != other.key[0] or not set(incident.alerts) & set(other.alerts):
        return False
    (start, end), (other_start, other_end) = _span(incident), _span(other)
    return start - NEAR <= other_end and other_start <= end + NEAR


def _span(incident: Incident) -> tuple[datetime, datetime]:
    """Return the start and end of the alerts of an incident; _ALWAYS when its lines have no time."""
    if incident.first_seen is None or incident.last_seen is None:
        return _ALWAYS
    if incident.status not in _OVER:
        return incident.first_seen, _ALWAYS[1]
    return incident.first_seen, max(incident.last_seen, incident.resolved_at or incident.last_seen)


def _candidates(connection: Connection, before: datetime, limit: int) -> list[Incident]:
    table, entries, acts = schema.incidents, schema.outbox, schema.acts
    handled = table.outerjoin(schema.handlings, schema.handlings.c.incident == table.c.id)
    query = (
        select(table.c.body)
        .select_from(handled)
        .where(
            table.c.changed_at < schema.text(before),
            table.c.status.in_(_OVER),
            shown_state().in_(_OVER),
            table.c.id.not_in(select(acts.c.incident).where(acts.c.at >= schema.text(before))),
            table.c.id.not_in(select(entries.c.incident).where(entries.c.state.in_(_UNSENT))),
            table.c.id.not_in(_changed_last()),
        )
    )
    return [loads(body, Incident) for body in connection.scalars(query.order_by(table.c.changed_at).limit(limit))]


def _neighbours(connection: Connection, candidates: Sequence[Incident]) -> list[Incident]:
    """Return the incidents that may be near to one of `candidates`, and these themselves: those with one of their keys that did
    not begin after all candidates ended."""
    table, keys, own = schema.incidents, schema.incident_keys, schema.incident_keys.alias("own")
    until = max((_span(incident)[1] for incident in candidates), default=_ALWAYS[0]) + NEAR
    same_key = and_(keys.c.scope == own.c.scope, keys.c.key == own.c.key)
    body_by_id: dict[str, str] = {}
    for ids in schema.in_chunks([incident.id for incident in candidates]):
        with_key = select(keys.c.incident).join(own, same_key).where(own.c.incident.in_(ids))
        query = select(table.c.id, table.c.body).where(
            table.c.id.in_(with_key),
            table.c.status != "merged",
            or_(table.c.first_seen.is_(None), table.c.first_seen <= schema.text(until)),
        )
        body_by_id |= {row.id: row.body for row in connection.execute(query)}
    return [loads(body, Incident) for body in body_by_id.values()]


def _changed_last() -> Select[tuple[str]]:
    return select(schema.revisions.c.id).order_by(schema.revisions.c.position.desc()).limit(1)


def _remove_alerts(connection: Connection, incident: Incident) -> None:
    table, (start, end) = schema.alerts, _span(incident)
    for scope, rule, entity in incident.alerts:
        statement = update(table).filter_by(scope=scope, rule=rule, entity=entity_text(entity))
        in_time = table.c.starts_at >= schema.text(start - NEAR), table.c.starts_at <= schema.text(end)
        connection.execute(statement.where(*in_time).values(body=REMOVED))


def _remove_evidence(connection: Connection, removed: Sequence[Incident]) -> None:
    """Remove the evidence of incidents, except events that are evidence of an alert that stays too."""
    event_ids = {event.event_id for incident in removed for event in incident.evidence}
    alerts, links = schema.alerts, schema.alert_evidence
    same_alert = and_(*(alerts.c[name] == links.c[name] for name in ("scope", "rule", "entity", "starts_at")))
    needed = select(links.c.event_id).join(alerts, same_alert).where(alerts.c.body != REMOVED)
    for chunk in schema.in_chunks(sorted(event_ids)):
        gone = set(chunk).difference(connection.scalars(needed.where(links.c.event_id.in_(chunk))))
        for column in (schema.evidence.c.event_id, links.c.event_id):
            _delete(connection, column, gone)


def _forget(connection: Connection, ids: Sequence[str]) -> None:
    """Remove all rows of the incidents `ids` and of the incidents that were merged into them."""
    table, pending = schema.incidents, list(ids)
    while pending:
        parts = [
            part
            for ids_chunk in schema.in_chunks(pending)
            for part in connection.scalars(
                select(table.c.id).where(table.c.merged_into.in_(ids_chunk), table.c.id.not_in(_changed_last()))
            )
        ]
        for column in (table.c.id, schema.revisions.c.id, *(table.c.incident for table in _INCIDENT_TABLES)):
            _delete(connection, column, pending)
        pending = parts


def _remove_acts(connection: Connection) -> None:
    """Remove the acts on removed incidents, except the last act: SQLite would give its number to another one."""
    acts, last = schema.acts, select(func.max(schema.acts.c.number)).scalar_subquery()
    connection.execute(delete(acts).where(acts.c.number < last, acts.c.incident.not_in(select(schema.incidents.c.id))))


def _delete(connection: Connection, column: Column[Any], values: Iterable[str]) -> None:
    for chunk in schema.in_chunks(sorted(values)):
        connection.execute(delete(column.table).where(column.in_(chunk)))
