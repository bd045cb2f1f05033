"""What the notifier owns of the store: who was told what, what is still to be sent, how every attempt went, who is silenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert

from engine.codec import dumps, loads
from engine.model.notifications import Attempt, Delivery, Reason, Settlement, Standing, State, Told
from engine.model.routes import Silence
from engine.store import schema

Pair = tuple[str, str]  # receiver, incident id
Begin = Callable[[], AbstractContextManager[Connection]]


class Outbox:
    """Deliveries and silences. Every method is one transaction; one notifier at a time may write.

    `reading` begins a transaction that only reads, `begin` one that writes.
    """

    def __init__(self, reading: Begin, begin: Begin) -> None:
        self._reading = reading
        self._begin = begin

    def told(self) -> Mapping[Pair, Told]:
        """Return what each receiver knows of each incident."""
        table = schema.deliveries
        with self._reading() as connection:
            rows = connection.execute(select(table.c.receiver, table.c.incident, table.c.body)).all()
        return {(receiver, incident): loads(body, Told) for receiver, incident, body in rows}

    def entries(self) -> Mapping[Pair, Delivery]:
        """Return the entry of every receiver and incident, whatever its state."""
        with self._reading() as connection:
            bodies = connection.scalars(select(schema.outbox.c.body).order_by(schema.outbox.c.due_at)).all()
        found = [loads(body, Delivery) for body in bodies]
        return {(entry.receiver, entry.incident): entry for entry in found}

    def put(self, entry: Delivery) -> None:
        """Store the entry; it replaces the one of the same receiver and incident."""
        self.change((entry,))

    def change(self, put: Iterable[Delivery], drop: Iterable[Delivery] = ()) -> None:
        """Store entries, each in the place of the one of its receiver and incident, and take out those of which there is
        nothing to tell any more: all of it or nothing."""
        with self._begin() as connection:
            for entry in put:
                _put(connection, entry)
            for entry in drop:
                connection.execute(delete(schema.outbox).filter_by(receiver=entry.receiver, incident=entry.incident))

    def settle(self, settlements: Iterable[Settlement]) -> None:
        """Record how attempts went: each entry as it is now, its place in the list of attempts, and what is known by it; all
        of them or none."""
        with self._begin() as connection:
            for settlement in settlements:
                _settle(connection, settlement)

    def attempts(self, incident: str) -> Sequence[Attempt]:
        """Return every attempt to tell of `incident`, oldest first."""
        table = schema.attempts
        with self._reading() as connection:
            rows = connection.execute(select(table).filter_by(incident=incident).order_by(table.c.number))
            return [_attempt(row) for row in rows]

    def standings(self, incident: str) -> Sequence[Standing]:
        """Return how it stands with every receiver that has to do with `incident`, by name."""
        known = select(schema.deliveries.c.receiver, schema.deliveries.c.body).filter_by(incident=incident)
        entered = select(schema.outbox.c.receiver, schema.outbox.c.body).filter_by(incident=incident)
        done = select(schema.attempts.c.receiver).filter_by(incident=incident, outcome=State.DELIVERED.value)
        with self._reading() as connection:
            told = {receiver: loads(body, Told) for receiver, body in connection.execute(known)}
            entries = {receiver: loads(body, Delivery) for receiver, body in connection.execute(entered)}
            delivered = Counter(connection.scalars(done))
        return [Standing(name, entries.get(name), told.get(name), delivered[name]) for name in sorted(told.keys() | entries)]

    def put_silence(self, silence: Silence) -> None:
        """Store a silence; it replaces the one of the same id."""
        with self._begin() as connection:
            row = {"ends_at": schema.text(silence.ends_at), "body": dumps(silence)}
            _replace(connection, schema.silences, {"id": silence.id}, row)

    def silences(self, after: datetime) -> Sequence[Silence]:
        """Return the silences that end later than `after`, soonest first."""
        table = schema.silences
        chosen = select(table.c.body).where(table.c.ends_at > schema.text(after)).order_by(table.c.ends_at, table.c.id)
        with self._reading() as connection:
            return [loads(body, Silence) for body in connection.scalars(chosen)]


def _attempt(row: Any) -> Attempt:
    at = datetime.fromisoformat(row.at)
    return Attempt(row.receiver, row.revision, Reason(row.reason), at, State(row.outcome), row.why)


def _settle(connection: Connection, settlement: Settlement) -> None:
    entry, told = settlement.entry, settlement.told
    key = {"receiver": entry.receiver, "incident": entry.incident}
    _put(connection, entry)
    if settlement.is_attempt:
        how = {"reason": entry.reason.value, "outcome": entry.state.value, "why": entry.why}
        row = {**key, **how, "revision": entry.revision, "at": schema.text(settlement.at)}
        connection.execute(insert(schema.attempts).values(**row))
    if told is not None:
        _replace(connection, schema.deliveries, key, {"body": dumps(told)})


def _put(connection: Connection, entry: Delivery) -> None:
    key = {"receiver": entry.receiver, "incident": entry.incident}
    row = {"state": entry.state.value, "due_at": schema.text(entry.due_at), "body": dumps(entry)}
    _replace(connection, schema.outbox, key, row)


def _replace(connection: Connection, table: Table, key: Mapping[str, str], row: Mapping[str, str]) -> None:
    statement = upsert(table).values(**key, **row)
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=dict(row)))
