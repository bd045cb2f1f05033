"""Search incidents in SQL, on the JSON of `incidents.body`: only the incidents of one page are decoded."""

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
    """A search: incidents in any of `states` (of STATES), with the severity and with all labels.

    Empty parts do not restrict the search. A label with an empty value matches any value.
    """

    states: tuple[str, ...] = ()
    severity: str = ""
    labels: tuple[tuple[str, str], ...] = ()


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


def _conditions(search: Search) -> list[ColumnElement[bool]]:
    severe = [_field("severity") == search.severity] if search.severity else []
    return [*severe, *(_has(name, value) for name, value in search.labels)]


def _has(name: str, value: str) -> ColumnElement[bool]:
    labels = func.json_each(incidents.c.body, "$.labels").table_valued("key", "value")
    query: Select[Any] = select(literal_column("1")).select_from(labels).where(labels.c.key == name)
    return (query.where(labels.c.value == value) if value else query).correlate(incidents).exists()


_STATE: ColumnElement[Any] = case((_field("pending"), "pending"), else_=incidents.c.status)
_SEEN = func.coalesce(_field("last_seen"), "")
