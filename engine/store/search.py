"""Finding incidents in SQL: only those of one page are read as a whole. Works on the JSON of `incidents.body`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, case, func, literal_column, select

from engine.codec import loads
from engine.model.incidents import Incident
from engine.model.rules import SEVERITIES
from engine.store.schema import incidents

STATES = ("open", "acknowledged", "pending", "resolved", "merged", "retracted")  # in the order of the list


class Search(Struct, frozen=True):
    """What is looked for: any of `states` (of STATES), the severity, every label. Empty parts look for nothing, and a label
    without a value for incidents that have it at all."""

    states: tuple[str, ...] = ()
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()


def found(connection: Connection, search: Search, limit: int, offset: int = 0) -> Sequence[Incident]:
    """Return at most `limit` incidents after the first `offset`: by state, then most severe, then seen last."""
    urgency = case({name: n for n, name in enumerate(STATES)}, value=_STATE), _rank().desc()
    fitting = select(incidents.c.body).where(*_conditions(search), *_in_states(search))
    chosen = fitting.order_by(*urgency, _SEEN.desc(), incidents.c.id.desc())
    return [loads(body, Incident) for body in connection.scalars(chosen.limit(limit).offset(offset))]


def counted(connection: Connection, search: Search) -> Mapping[str, int]:
    """Return how many incidents of each state fit, whatever states are looked for."""
    rows = connection.execute(select(_STATE, func.count()).where(*_conditions(search)).group_by(_STATE))
    return dict.fromkeys(STATES, 0) | {row[0]: row[1] for row in rows}


def _field(name: str) -> ColumnElement[Any]:
    return func.json_extract(incidents.c.body, f"$.{name}")


def _rank() -> ColumnElement[Any]:
    return case({name: n for n, name in enumerate(SEVERITIES)}, value=_field("severity"), else_=-1)


def _in_states(search: Search) -> list[ColumnElement[bool]]:
    return [_STATE.in_(search.states)] if search.states else []


def _conditions(search: Search) -> list[ColumnElement[bool]]:
    severe = [_field("severity") == search.severity] if search.severity else []
    return [*severe, *(_has(name, value) for name, value in search.labels)]


def _has(name: str, value: str) -> ColumnElement[bool]:
    labels = func.json_each(incidents.c.body, "$.labels").table_valued("key", "value")
    fits: Select[Any] = select(literal_column("1")).select_from(labels).where(labels.c.key == name)
    return (fits.where(labels.c.value == value) if value else fits).correlate(incidents).exists()


_STATE: ColumnElement[Any] = case((_field("pending"), "pending"), else_=incidents.c.status)
_SEEN = func.coalesce(_field("last_seen"), "")
