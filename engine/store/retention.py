"""What is removed from the store for its age: incidents that are over, with everything that is known of them only.

Correlation may repeat an old alert at any time, so of a removed one its place stays, without a body: it can never open an
incident again. Which alerts an incident is made of is not written down; they are those of its keys in its time. So one that
another incident of the same key is near to is removed together with that one, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Select, delete, func, literal_column, or_, select, true, update

from engine.codec import loads
from engine.model.incidents import Incident
from engine.model.notifications import DeliveryState
from engine.store import schema
from engine.store.ledger import REMOVED, entity_text

NEAR = timedelta(days=1)
_OVER = ("resolved", "retracted")
_UNTOLD = (DeliveryState.QUEUED.value, DeliveryState.SENDING.value, DeliveryState.RETRY_LATER.value, DeliveryState.FOLDED.value)
_OF_INCIDENTS = (schema.told, schema.deliveries, schema.outbox, schema.attempts)
_AT_ONCE = 500  # bound parameters of one statement
_ALWAYS = (datetime.min.replace(tzinfo=UTC) + NEAR, datetime.max.replace(tzinfo=UTC) - NEAR)


def prune(connection: Connection, before: datetime, limit: int) -> int:
    """Remove at most `limit` incidents that are over and have not changed since `before`; return how many.

    What became part of one goes with it, and batches and silences of that time go too. Never removed: what is open, what
    somebody is still to be told of, and the incident that changed last, whose revision marks how far readers are.
    """
    candidates = _candidates(connection, before, limit)
    removed = removable(candidates, _neighbours(connection, candidates))
    for incident in removed:
        _remove_alerts(connection, incident)
    _remove_evidence(connection, removed)
    _forget(connection, [incident.id for incident in removed])
    _remove_older(connection, schema.text(before))
    return len(removed)


def removable(candidates: Sequence[Incident], incidents: Iterable[Incident]) -> list[Incident]:
    """Return the `candidates` that no incident which stays is near to, in time and by a key. Pure."""
    every, chosen = list(incidents), {incident.id: incident for incident in candidates}
    while True:
        staying = [incident for incident in every if incident.id not in chosen]
        kept = {id_: incident for id_, incident in chosen.items() if not any(_near(incident, other) for other in staying)}
        if len(kept) == len(chosen):
            return list(kept.values())
        chosen = kept


def _near(one: Incident, other: Incident) -> bool:
    if one.key[0] != other.key[0] or not set(one.alerts) & set(other.alerts):
        return False
    (start, end), (others_start, others_end) = _span(one), _span(other)
    return start - NEAR <= others_end and others_start <= end + NEAR


def _span(incident: Incident) -> tuple[datetime, datetime]:
    """Return when the alerts of an incident were; always, when its lines bear no time."""
    if incident.first_seen is None or incident.last_seen is None:
        return _ALWAYS
    if incident.status not in _OVER:
        return incident.first_seen, _ALWAYS[1]
    return incident.first_seen, max(incident.last_seen, incident.resolved_at or incident.last_seen)


def _candidates(connection: Connection, before: datetime, limit: int) -> list[Incident]:
    table, entries = schema.incidents, schema.outbox
    chosen = select(table.c.body).where(
        table.c.changed_at < schema.text(before),
        table.c.status.in_(_OVER),
        table.c.id.not_in(select(entries.c.incident).where(entries.c.state.in_(_UNTOLD))),
        table.c.id.not_in(_changed_last()),
    )
    return [loads(body, Incident) for body in connection.scalars(chosen.order_by(table.c.changed_at).limit(limit))]


def _neighbours(connection: Connection, candidates: Sequence[Incident]) -> list[Incident]:
    """Return the incidents that may be near to one of `candidates`: those that did not begin after all of them."""
    table = schema.incidents
    until = max((_span(each)[1] for each in candidates), default=_ALWAYS[0]) + NEAR
    chosen = select(table.c.body).where(
        table.c.status != "merged", or_(table.c.first_seen.is_(None), table.c.first_seen <= schema.text(until))
    )
    return [loads(body, Incident) for body in connection.scalars(chosen)]


def _changed_last() -> Select[tuple[str]]:
    return select(schema.revisions.c.id).order_by(literal_column("rowid").desc()).limit(1)


def _remove_alerts(connection: Connection, incident: Incident) -> None:
    table, (start, end) = schema.alerts, _span(incident)
    for scope, rule, entity in incident.alerts:
        of_key = update(table).filter_by(scope=scope, rule=rule, entity=entity_text(entity))
        in_time = table.c.starts_at.between(schema.text(start - NEAR), schema.text(end))
        connection.execute(of_key.where(in_time).values(body=REMOVED))


def _remove_evidence(connection: Connection, removed: Sequence[Incident]) -> None:
    """Remove the events that incidents were proved by, but for those that an alert that stays is proved by too."""
    shown = {event.event_id for incident in removed for event in incident.evidence}
    if not shown:
        return
    body = func.nullif(schema.alerts.c.body, REMOVED)
    each = func.json_each(body, "$.evidence").table_valued("value")
    needed = connection.scalars(select(each.c.value).select_from(schema.alerts.join(each, true())))
    _delete(connection, schema.evidence.c.event_id, shown.difference(needed))


def _forget(connection: Connection, ids: Sequence[str]) -> None:
    """Remove everything under the ids of incidents, and of those that became part of them."""
    table, found = schema.incidents, list(ids)
    while found:
        into = func.json_extract(table.c.body, "$.merged_into")
        parts = [
            part
            for some in _some(found)
            for part in connection.scalars(select(table.c.id).where(into.in_(some), table.c.id.not_in(_changed_last())))
        ]
        for kept in (table.c.id, schema.revisions.c.id, *(each.c.incident for each in _OF_INCIDENTS)):
            _delete(connection, kept, found)
        found = parts


def _remove_older(connection: Connection, before: str) -> None:
    """Remove old batches but the last of each query, which Spark may hand over again, and silences that ended."""
    batches, later = schema.batches, schema.batches.alias()
    last = select(func.max(later.c.batch)).where(later.c.query == batches.c.query).scalar_subquery()
    connection.execute(delete(batches).where(batches.c.at < before, batches.c.batch < last))
    connection.execute(delete(schema.silences).where(schema.silences.c.ends_at < before))


def _delete(connection: Connection, column: Column[Any], values: Iterable[str]) -> None:
    for some in _some(sorted(values)):
        connection.execute(delete(column.table).where(column.in_(some)))


def _some(values: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (values[at : at + _AT_ONCE] for at in range(0, len(values), _AT_ONCE))
