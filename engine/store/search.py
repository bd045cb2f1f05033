"""Search incidents in SQL: lists are selected, ordered and counted in an index, and only the incidents of one page are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, case, func, literal, null, select, union_all

from engine.codec import loads
from engine.model.incidents import STATES, Incident
from engine.model.rules import SEVERITIES
from engine.model.searches import Search
from engine.store.acts import HANDLED, shown, shown_state
from engine.store.databases import Occurs
from engine.store.schema import in_chunks, incident_labels, incidents, outbox, searchable, text

_HOUR = len("2022-10-05T12")


def find(connection: Connection, search: Search, limit: int, offset: int = 0) -> tuple[Sequence[Incident], Mapping[str, int]]:
    """Return at most `limit` incidents that match after the first `offset`, ordered by state, most severe first, last seen
    first; and how many match by state, for all STATES, without regard to the states of the search.

    One statement selects and counts them, so that texts are searched once.
    """
    table = incidents.c
    rank = case({name: n for n, name in enumerate(SEVERITIES)}, value=table.severity, else_=-1)
    columns = (table.id, table.seen, shown_state().label("state"), rank.label("rank"))
    hits = select(*columns).select_from(HANDLED).where(*_conditions(search)).cte("hits")
    urgency = case({name: n for n, name in enumerate(STATES)}, value=hits.c.state)
    page = select(hits.c.id, hits.c.state, hits.c.rank, hits.c.seen, literal(0).label("number"))
    if search.states:
        page = page.where(hits.c.state.in_(search.states))
    order = urgency, hits.c.rank.desc(), hits.c.seen.desc(), hits.c.id.desc()
    page_rows = page.order_by(*order).limit(limit).offset(offset).subquery("page")
    counts = select(null(), hits.c.state, null(), null(), func.count()).group_by(hits.c.state)
    rows = connection.execute(union_all(select(page_rows), counts)).all()
    hit_rows = sorted((row for row in rows if row.id is not None), key=lambda row: (row.rank, row.seen, row.id), reverse=True)
    ids = [row.id for row in sorted(hit_rows, key=lambda row: STATES.index(row.state))]  # a union has no order
    count_by_state = {row.state: row.number for row in rows if row.id is None}
    return shown(connection, incidents_of(connection, ids)), dict.fromkeys(STATES, 0) | count_by_state


def incidents_of(connection: Connection, ids: Sequence[str]) -> list[Incident]:
    """Return the incidents `ids` as the job stored them, in their order."""
    table, body_by_id = incidents.c, dict[str, str]()
    for chunk in in_chunks(ids):
        query = select(table.id, table.body).where(table.id.in_(chunk))
        body_by_id |= {row.id: row.body for row in connection.execute(query)}
    return [loads(body_by_id[id_], Incident) for id_ in ids]


def count_by_state_and_severity(connection: Connection) -> Mapping[tuple[str, str], int]:
    """Return how many incidents there are by state and severity; those without any are left out."""
    state, severity = shown_state().label("state"), incidents.c.severity
    rows = connection.execute(select(state, severity, func.count()).select_from(HANDLED).group_by(state, severity))
    return {(row[0], row[1]): row[2] for row in rows}


def count_by_rule(connection: Connection) -> Mapping[str, int]:
    """Return how many incidents there are by rule, without those that were merged or retracted."""
    state = shown_state()
    query = select(incidents.c.rule, func.count()).select_from(HANDLED).where(state.not_in(("merged", "retracted")))
    return {row[0]: row[1] for row in connection.execute(query.group_by(incidents.c.rule))}


def values_by_facet(connection: Connection) -> Mapping[str, Sequence[str]]:
    """Return the values of `component`, `cluster`, `rule` and `receiver` that any incident has, sorted."""
    columns = {"component": incidents.c.component, "cluster": incidents.c.scope, "rule": incidents.c.rule}
    columns["receiver"] = outbox.c.receiver
    return {name: sorted(connection.scalars(select(column).distinct())) for name, column in columns.items()}


def going_on(connection: Connection, since: datetime) -> Sequence[tuple[str, datetime, datetime, int]]:
    """Return severity, first hour, last hour and number of the incidents that went on at `since` or later, together where the
    others are equal; hours before `since` are its hour."""
    table, start = incidents.c, text(since)
    began = case((table.first_seen < start, literal(start)), else_=table.first_seen)
    hours = [func.substr(column, 1, _HOUR).label(name) for name, column in (("first", began), ("last", table.until))]
    query = (
        select(table.severity, *hours, func.count())
        .where(table.until >= start, table.first_seen.is_not(None), table.state.not_in(("merged", "retracted")))
        .group_by(table.severity, "first", "last")
    )
    rows = connection.execute(query)
    return [(row[0], _hour(row[1]), _hour(row[2]), row[3]) for row in rows]


def _hour(stamp: str) -> datetime:
    return datetime.fromisoformat(f"{stamp}:00:00+00:00")


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
