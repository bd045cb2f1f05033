"""Find the earlier incidents of a rule in SQL: they are chosen in an index, and only the few that are shown are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, case, func, select

from engine.codec import loads
from engine.model.acts import Act
from engine.model.incidents import Incident
from engine.model.past import (
    CLUSTER,
    ELSEWHERE,
    ENTITY,
    MOST_OF_A_NEARNESS,
    MOST_REMARKS,
    REMARKED_BY,
    Past,
    PastIncident,
)
from engine.store.acts import HANDLED, shown
from engine.store.ledger import key_text
from engine.store.schema import acts, handlings, incident_keys, incidents
from engine.store.search import incidents_of

_NO_INCIDENTS = ("pending", "merged", "retracted")
_NEARNESS = (ENTITY, CLUSTER, ELSEWHERE)
_ACTS_READ = 50  # of one incident: the last ones, of which those with a text are shown


def past_of(connection: Connection, incident: Incident) -> Past:
    """Return the nearest of the incidents of the same rule that opened before `incident` (see Past); not those that were never
    confirmed, merged or retracted."""
    rows = connection.execute(_nearest(incident)).all()
    ids = [row.id for row in rows]
    remarks = _remarks(connection, ids)
    earlier = zip(rows, shown(connection, incidents_of(connection, ids)), strict=True)
    chosen = tuple(PastIncident(other, _NEARNESS[row.distance], tuple(remarks[row.id])) for row, other in earlier)
    return Past(chosen, rows[0].total if rows else 0)


def _nearest(incident: Incident) -> Select[Any]:
    """Return the query of the nearest earlier incidents: `id`, `distance` (0 for ENTITY), and `total`, the number of all."""
    table, keys = incidents.c, incident_keys.c
    same_entity = select(keys.incident).where(keys.scope == incident.key[0], keys.key == key_text(incident.key))
    own_number = select(table.number).where(table.id == incident.id).scalar_subquery()
    distance = case((table.id.in_(same_entity), 0), (table.scope == incident.key[0], 1), else_=2)
    acted_on = case((handlings.c.incident.is_not(None), 1), else_=0)
    candidates = (
        select(
            table.id, table.number, distance.label("distance"), acted_on.label("acted_on"), func.count().over().label("total")
        )
        .select_from(HANDLED)
        .where(table.rule == incident.rule, table.number < own_number, table.state.not_in(_NO_INCIDENTS))
        .subquery("candidates")
    )
    order = candidates.c.acted_on.desc(), candidates.c.number.desc()
    place = func.row_number().over(partition_by=candidates.c.distance, order_by=order).label("place")
    placed = select(candidates, place).subquery("placed")
    return select(placed).where(placed.c.place <= MOST_OF_A_NEARNESS).order_by(placed.c.distance, placed.c.place)


def _remarks(connection: Connection, ids: Sequence[str]) -> defaultdict[str, list[Act]]:
    """Return the last remarks on each of the incidents `ids`, oldest first."""
    table = acts.c
    place = func.row_number().over(partition_by=table.incident, order_by=table.number.desc()).label("place")
    kinds = [kind.value for kind in REMARKED_BY]
    last = select(table.number, table.body, place).where(table.incident.in_(ids), table.kind.in_(kinds)).subquery("last")
    query = select(last.c.body).where(last.c.place <= _ACTS_READ).order_by(last.c.number)
    remarks: defaultdict[str, list[Act]] = defaultdict(list)
    for act in (loads(body, Act) for body in connection.scalars(query)):
        if act.text:
            remarks[act.incident] = [*remarks[act.incident], act][-MOST_REMARKS:]
    return remarks
