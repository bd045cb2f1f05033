"""Search incidents in SQL: lists are selected, ordered and counted in an index, and only the incidents of one page are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, case, func, select

from engine.codec import loads
from engine.model.incidents import STATES, Incident
from engine.model.rules import SEVERITIES
from engine.model.searches import Search
from engine.store.acts import shown, shown_state
from engine.store.databases import Occurs
from engine.store.schema import handlings, incident_labels, incidents, outbox, searchable, text

_HANDLED = incidents.outerjoin(handlings, handlings.c.incident == incidents.c.id)


def find(connection: Connection, search: Search, limit: int, offset: int = 0) -> Sequence[Incident]:
    """Return at most `limit` incidents after the first `offset`, ordered by state, most severe first, last seen first."""
    table, state = incidents.c, shown_state()
    urgency = case({name: n for n, name in enumerate(STATES)}, value=state)
    rank = case({name: n for n, name in enumerate(SEVERITIES)}, value=table.severity, else_=-1)
    order = (urgency, rank.desc(), table.seen.desc(), table.id.desc())
    in_states = [state.in_(search.states)] if search.states else []
    page = select(table.id).select_from(_HANDLED).where(*_conditions(search), *in_states)
    page = page.order_by(*order).limit(limit).offset(offset)
    bodies = select(table.body).select_from(_HANDLED).where(table.id.in_(page.scalar_subquery())).order_by(*order)
    return shown(connection, (loads(body, Incident) for body in connection.scalars(bodies)))


def count_by_state(connection: Connection, search: Search) -> Mapping[str, int]:
    """Return how many incidents match by state, for all STATES, without regard to the states of the search."""
    state = shown_state().label("state")
    rows = connection.execute(select(state, func.count()).select_from(_HANDLED).where(*_conditions(search)).group_by(state))
    return dict.fromkeys(STATES, 0) | {row[0]: row[1] for row in rows}


def count_by_state_and_severity(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Return how many incidents there are by state and severity; those without any are left out."""
    table = incidents.c
    rows = connection.execute(select(table.state, table.severity, func.count()).group_by(table.state, table.severity))
    return {(row[0], row[1]): row[2] for row in rows}


def values_by_facet(connection: Connection) -> Mapping[str, Sequence[str]]:
    """Return the values of `component`, `cluster`, `rule` and `receiver` that any incident has, sorted."""
    columns = {"component": incidents.c.component, "cluster": incidents.c.scope, "rule": incidents.c.rule}
    columns["receiver"] = outbox.c.receiver
    return {name: sorted(connection.scalars(select(column).distinct())) for name, column in columns.items()}


def going_on(connection: Connection, since: datetime) -> Sequence[tuple[str, datetime, datetime]]:
    """Return severity, first and last time of the incidents that went on at `since` or later."""
    table = incidents.c
    query = select(table.severity, table.first_seen, table.until).where(
        table.until >= text(since), table.first_seen.is_not(None), table.state.not_in(("merged", "retracted"))
    )
    rows = connection.execute(query)
    return [(severity, datetime.fromisoformat(first), datetime.fromisoformat(last)) for severity, first, last in rows]


def _conditions(search: Search) -> list[ColumnElement[bool]]:
    table = incidents.c
    columns = {"severity": table.severity, "component": table.component, "cluster": table.scope, "rule": table.rule}
    parts = [column == getattr(search, name) for name, column in columns.items() if getattr(search, name)]
    if search.receiver:
        parts.append(table.id.in_(select(outbox.c.incident).where(outbox.c.receiver == search.receiver)))
    if search.words:
        texts = [Occurs(searchable.c.text, word.lower()) for word in search.words]
        parts.append(table.id.in_(select(searchable.c.incident).where(*texts)))
    return [*parts, *(_has(name, value) for name, value in search.labels)]


def _has(name: str, value: str) -> ColumnElement[bool]:
    table = incident_labels.c
    values = [table.value == value] if value else []
    return incidents.c.id.in_(select(table.incident).where(table.name == name, *values))
