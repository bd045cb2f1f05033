"""What people do about incidents, in the store: recorded once, in the order of recording, and joined to incidents as they are
read. The job never writes these tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, and_, case, delete, func, insert, or_, select

from engine.acting import as_shown, decide_act, handling_of, noted, sentence, silence_of
from engine.codec import dumps, loads
from engine.errors import UnknownIncident
from engine.model.acts import Act, ActDecision, ActKind, ActOutcome, Handling
from engine.model.incidents import Incident
from engine.model.routes import Silence
from engine.model.words import worded
from engine.store import schema
from engine.store.outbox import put_silence

# incidents with what became of them by what people did, if anything
HANDLED = schema.incidents.outerjoin(schema.handlings, schema.handlings.c.incident == schema.incidents.c.id)


class RecordedAct(Struct, frozen=True):
    """The result of recording an act: the decision, the incident as it is shown now, and the act as it is stored; None when it
    had no effect.

    `is_repeated`: an act of the same key was recorded before; it is the one returned, and nothing was changed now.
    """

    decision: ActDecision
    incident: Incident
    act: Act | None = None
    is_repeated: bool = False


class Acts:
    """The acts in a store. Every method is one transaction and may be called from any process and thread.

    Args:
        reading: begins a transaction that only reads.
        begin: begins a transaction that writes.
    """

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[Connection]],
        begin: Callable[[], AbstractContextManager[Connection]],
    ) -> None:
        self._reading, self._begin = reading, begin

    def record(self, act: Act) -> RecordedAct:
        """Record an act if it has an effect. One on a merged incident is recorded for the incident that it is part of now.

        A silence is added in the same transaction. Raises UnknownIncident, and StoreError.
        """
        with self._begin() as connection:
            incident = _surviving(connection, act.incident)
            if earlier := _act_of(connection, act.key):
                shown_incident = shown(connection, [_surviving(connection, earlier.incident)])[0]
                decision = ActDecision(ActOutcome.DONE, sentence(earlier))
                return RecordedAct(decision, shown_incident, earlier, is_repeated=True)
            act = noted(act, incident)
            before = shown(connection, [incident])[0]
            decision = decide_act(act, before)
            ended = _ended_silence(connection, act) if act.kind is ActKind.UNSILENCE else None
            if act.kind is ActKind.UNSILENCE and ended is None:
                decision = ActDecision(
                    ActOutcome.UNCHANGED, f"there is no silence `{act.silence}` of this incident that has not ended"
                )
            if decision.outcome is not ActOutcome.DONE:
                return RecordedAct(decision, before)
            _insert(connection, act)
            if (silence := ended or silence_of(act, incident)) is not None:
                put_silence(connection, silence)
            return RecordedAct(decision, shown(connection, [incident])[0], act)

    def of(self, incident: str) -> Sequence[Act]:
        """Return the acts on an incident, in the order of recording."""
        with self._reading() as connection:
            return _acts_on(connection, incident)

    def incident(self, id: str) -> Incident:
        """Return the incident `id`, or the one that it is part of now, as it is shown. Raises UnknownIncident."""
        with self._reading() as connection:
            return shown(connection, [_surviving(connection, id)])[0]

    def changed_since(self, mark: int) -> tuple[int, Sequence[Incident]]:
        """Return the next mark, and the incidents with an act later than `mark` as they are shown now. Mark 0 is before all."""
        table = schema.acts.c
        with self._reading() as connection:
            latest = connection.scalar(select(func.max(table.number))) or 0
            if latest <= mark:
                return mark, ()
            ids = select(table.incident).where(table.number > mark)
            query = select(schema.incidents.c.body).where(schema.incidents.c.id.in_(ids)).order_by(schema.incidents.c.number)
            return latest, shown(connection, [loads(body, Incident) for body in connection.scalars(query)])

    def id_of(self, prefix: str) -> str:
        """Return the id of the only incident whose id begins with `prefix`, with or without `inc-`. Raises UnknownIncident."""
        column = schema.incidents.c.id
        with self._reading() as connection:
            ids = [
                id_
                for start in ((prefix, f"inc-{prefix}") if prefix else ())
                for id_ in connection.scalars(select(column).where(column.startswith(start, autoescape=True)).limit(4))
            ]
        if prefix in ids:
            return prefix
        if len(ids) == 1:
            return str(ids[0])
        if not ids:
            raise UnknownIncident(worded("there is no incident `{id}`", id=prefix) + "; see tocsin incidents list")
        sentence = worded("`{id}` is not the beginning of one id alone: {ids}", id=prefix, ids=", ".join(ids[:3]))
        raise UnknownIncident(f"{sentence}; write more of it")


def shown(connection: Connection, incidents: Iterable[Incident]) -> list[Incident]:
    """Return incidents as the job stored them as they are shown after what people did."""
    every = list(incidents)
    handling_by_id = handlings(connection, [incident.id for incident in every])
    return [as_shown(incident, handling_by_id.get(incident.id)) for incident in every]


def shown_state() -> ColumnElement[str]:
    """Return the state of an incident as it is shown, in SQL, for a query of incidents that are joined with their handlings:
    the same as engine/acting.as_shown."""
    return case((is_in_force(), schema.handlings.c.state), else_=schema.incidents.c.state)


def is_in_force() -> ColumnElement[bool]:
    """Return whether the state that a person set decides how an incident is shown, in SQL, for the same query."""
    table, handling = schema.incidents.c, schema.handlings.c
    newest = case((handling.state == "acknowledged", table.began), else_=table.seen)
    no_times = or_(newest == "", handling.until_seen == "")
    counted = or_(handling.state == "acknowledged", table["count"] <= handling["count"])
    return and_(
        table.state.in_(("open", "resolved")),
        handling.state.in_(("open", "acknowledged", "resolved")),
        or_(handling.state != "acknowledged", table.state == "open"),
        or_(and_(no_times, counted), and_(newest != "", newest <= handling.until_seen)),
    )


def handlings(connection: Connection, ids: Sequence[str]) -> Mapping[str, Handling]:
    """Return the handling of those of the incidents `ids` that have one."""
    table, handling_by_id = schema.handlings.c, dict[str, Handling]()
    for chunk in schema.in_chunks(ids):
        query = select(table.incident, table.body).where(table.incident.in_(chunk))
        handling_by_id |= {incident: loads(body, Handling) for incident, body in connection.execute(query)}
    return handling_by_id


def _surviving(connection: Connection, id: str) -> Incident:
    """Return the incident `id`, or the one that it is part of now. Raises UnknownIncident."""
    table, seen = schema.incidents.c, set[str]()
    while True:
        body = connection.scalar(select(table.body).where(table.id == id))
        if body is None:
            raise UnknownIncident(worded("there is no incident `{id}`", id=id) + "; see tocsin incidents list")
        incident = loads(body, Incident)
        if not incident.merged_into or incident.merged_into in seen:
            return incident
        seen.add(id)
        id = incident.merged_into


def _act_of(connection: Connection, key: str) -> Act | None:
    body = connection.scalar(select(schema.acts.c.body).where(schema.acts.c.key == key))
    return None if body is None else loads(body, Act)


def _ended_silence(connection: Connection, act: Act) -> Silence | None:
    """Return the silence that an act names, as it is after its end now; None when it has ended before, or no act on the same
    incident added it."""
    if not any(each.kind is ActKind.SILENCE and each.silence == act.silence for each in _acts_on(connection, act.incident)):
        return None
    body = connection.scalar(select(schema.silences.c.body).where(schema.silences.c.id == act.silence))
    silence = None if body is None else loads(body, Silence)
    return None if silence is None or silence.ends_at <= act.at else replace(silence, ends_at=act.at)


def _acts_on(connection: Connection, incident: str) -> list[Act]:
    table = schema.acts.c
    bodies = connection.scalars(select(table.body).where(table.incident == incident).order_by(table.number))
    return [loads(body, Act) for body in bodies]


def _insert(connection: Connection, act: Act) -> None:
    row = {"key": act.key, "incident": act.incident, "kind": act.kind.value, "at": schema.text(act.at), "body": dumps(act)}
    connection.execute(insert(schema.acts), [row])
    handling = handling_of(_acts_on(connection, act.incident))
    values: dict[str, Any] = {
        "state": handling.state,
        "until_seen": schema.text(handling.until_seen) if handling.until_seen else "",
        "count": handling.count,
        "body": dumps(handling),
    }
    connection.execute(delete(schema.handlings).where(schema.handlings.c.incident == act.incident))
    connection.execute(insert(schema.handlings), [{"incident": act.incident, **values}])
