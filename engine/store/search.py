"""Search incidents in SQL, on the JSON of `incidents.body`: only the incidents of one page are decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, literal_column, or_, select

from engine.codec import loads
from engine.model.incidents import STATES, Incident
from engine.model.rules import SEVERITIES
from engine.model.searches import Search
from engine.store.schema import incidents, outbox, text


def find(connection: Connection, search: Search, limit: int, offset: int = 0) -> Sequence[Incident]:
    """Return at most `limit` incidents after the first `offset`, ordered by state, most severe first, last seen first."""
    urgency = case({name: n for n, name in enumerate(STATES)}, value=_STATE), _rank().desc()
    query = select(incidents.c.body).where(*_conditions(search), *_in_states(search))
    ordered = query.order_by(*urgency, _SEEN.desc(), incidents.c.id.desc())
    return [loads(body, Incident) for body in connection.scalars(ordered.limit(limit).offset(offset))]


def count_by_state(connection: Connection, search: Search) -> Mapping[str, int]:
    """Return how many incidents match by state, for all STATES, without regard to the states of the search."""
    rows = connection.execute(select(_STATE, func.count()).where(*_conditions(search)).group_by(_STATE))
    return dict.fromkeys(STATES, 0) | {row[0]: row[1] for row in rows}


def _field(name: str) -> ColumnElement[Any]:
    return func.json_extract(incidents.c.body, f"$.{name}")


def _rank() -> ColumnElement[Any]:
    return case({name: n for n, name in enumerate(SEVERITIES)}, value=_field("severity"), else_=-1)


def _in_states(search: Search) -> list[ColumnElement[bool]]:
    return [_STATE.in_(search.states)] if search.states else []


def values_by_facet(connection: Connection) -> Mapping[str, Sequence[str]]:
    """Return the values of `component`, `cluster`, `rule` and `receiver` that any incident has, sorted."""
    columns = {"component": _field("component"), "cluster": incidents.c.scope, "rule": incidents.c.rule}
    columns["receiver"] = outbox.c.receiver
    return {name: sorted(connection.scalars(select(column).distinct())) for name, column in columns.items()}


def going_on(connection: Connection, since: datetime) -> Sequence[tuple[str, datetime, datetime]]:
    """Return severity, first and last time of the incidents that went on at `since` or later."""
    over = incidents.c.status.in_(("merged", "retracted"))
    query = select(_field("severity"), incidents.c.first_seen, incidents.c.until).where(
        incidents.c.until >= text(since), incidents.c.first_seen.is_not(None), ~over
    )
    rows = connection.execute(query)
    return [(severity, datetime.fromisoformat(first), datetime.fromisoformat(last)) for severity, first, last in rows]


def _conditions(search: Search) -> list[ColumnElement[bool]]:
    columns = {"severity": _field("severity"), "component": _field("component"), "cluster": incidents.c.scope}
    columns["rule"] = incidents.c.rule
    parts = [column == getattr(search, name) for name, column in columns.items() if getattr(search, name)]
    if search.receiver:
        parts.append(incidents.c.id.in_(select(outbox.c.incident).where(outbox.c.receiver == search.receiver)))
    return [*parts, *(_has(name, value) for name, value in search.labels), *(_contains(word) for word in search.words)]


def _contains(word: str) -> ColumnElement[bool]:
    """Return whether a text that people read of an incident holds `word`, without regard to ASCII case."""
    texts = [_field(name) for name in ("title", "cause", "labels", "rule")]
    events = func.json_each(incidents.c.body, "$.evidence").table_valued("value")
    lines: Select[Any] = select(literal_column("1")).select_from(events)
    in_lines = lines.where(_holds(func.json_extract(events.c.value, "$.text"), word)).correlate(incidents).exists()
    return or_(*(_holds(column, word) for column in texts), in_lines)


def _holds(column: ColumnElement[Any], word: str) -> ColumnElement[bool]:
    return func.instr(func.lower(column), word.lower()) > 0


def _has(name: str, value: str) -> ColumnElement[bool]:
    labels = func.json_each(incidents.c.body, "$.labels").table_valued("key", "value")
    query: Select[Any] = select(literal_column("1")).select_from(labels).where(labels.c.key == name)
    return (query.where(labels.c.value == value) if value else query).correlate(incidents).exists()


_STATE: ColumnElement[Any] = case((_field("pending"), "pending"), else_=incidents.c.status)
_SEEN = func.coalesce(_field("last_seen"), "")
