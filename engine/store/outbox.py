"""The notifier's part of the store: notification logs, deliveries, attempts and silences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select

from engine.codec import dumps, loads
from engine.model.notifications import Attempt, Delivery, DeliveryState, NotificationLog, Reason, ReceiverStatus, Settlement
from engine.model.routes import Silence
from engine.store import schema
from engine.store.databases import upsert

Pair = tuple[str, str]  # the receiver's name, the incident's id
BeginTransaction = Callable[[], AbstractContextManager[Connection]]


class Outbox:
    """Deliveries and silences. Every method is one transaction; one notifier at a time may write.

    Args:
        reading: begins a transaction that only reads.
        begin: begins a transaction that writes.
    """

    def __init__(self, reading: BeginTransaction, begin: BeginTransaction) -> None:
        self._reading = reading
        self._begin = begin

    def notification_logs(self) -> Mapping[Pair, NotificationLog]:
        """Return the notification log of every receiver and incident."""
        table = schema.deliveries
        with self._reading() as connection:
            rows = connection.execute(select(table.c.receiver, table.c.incident, table.c.body)).all()
        return {(receiver, incident): loads(body, NotificationLog) for receiver, incident, body in rows}

    def entries(self) -> Mapping[Pair, Delivery]:
        """Return the delivery of every receiver and incident in any state, soonest due first."""
        with self._reading() as connection:
            bodies = connection.scalars(select(schema.outbox.c.body).order_by(schema.outbox.c.due_at)).all()
        entries = [loads(body, Delivery) for body in bodies]
        return {(entry.receiver, entry.incident): entry for entry in entries}

    def counts(self) -> Mapping[tuple[str, str], int]:
        """Return how many deliveries there are by receiver and state."""
        table = schema.outbox.c
        with self._reading() as connection:
            rows = connection.execute(select(table.receiver, table.state, func.count()).group_by(table.receiver, table.state))
            return {(row[0], row[1]): row[2] for row in rows}

    def put(self, entry: Delivery) -> None:
        """Store a delivery; it replaces that of the same receiver and incident."""
        self.change((entry,))

    def change(self, put: Iterable[Delivery], drop: Iterable[Delivery] = ()) -> None:
        """Store the deliveries `put`, each replacing that of its receiver and incident, and delete the deliveries `drop`: all
        of them or none."""
        with self._begin() as connection:
            _put(connection, put)
            for entry in drop:
                connection.execute(delete(schema.outbox).filter_by(receiver=entry.receiver, incident=entry.incident))

    def settle(self, settlements: Iterable[Settlement]) -> None:
        """Record the results of attempts: the deliveries as they are now, the attempts, and the notification logs; all or
        none."""
        settled = list(settlements)
        attempts = [_attempt_row(settlement) for settlement in settled if settlement.is_attempt]
        logs = [
            {**_key(settlement.entry), "body": dumps(settlement.log)} for settlement in settled if settlement.log is not None
        ]
        with self._begin() as connection:
            _put(connection, [settlement.entry for settlement in settled])
            if attempts:
                connection.execute(insert(schema.attempts), attempts)
            _replace(connection, schema.deliveries, logs)

    def attempts(self, incident: str) -> Sequence[Attempt]:
        """Return every attempt to notify a receiver of `incident`, oldest first."""
        table = schema.attempts
        with self._reading() as connection:
            rows = connection.execute(select(table).filter_by(incident=incident).order_by(table.c.number))
            return [_attempt(row) for row in rows]

    def standings(self, incident: str) -> Sequence[ReceiverStatus]:
        """Return the status of every receiver with a delivery or a notification log of `incident`, ordered by name."""
        logs_query = select(schema.deliveries.c.receiver, schema.deliveries.c.body).filter_by(incident=incident)
        entries_query = select(schema.outbox.c.receiver, schema.outbox.c.body).filter_by(incident=incident)
        delivered_query = select(schema.attempts.c.receiver).filter_by(incident=incident, outcome=DeliveryState.DELIVERED.value)
        with self._reading() as connection:
            notification_logs = {receiver: loads(body, NotificationLog) for receiver, body in connection.execute(logs_query)}
            entries = {receiver: loads(body, Delivery) for receiver, body in connection.execute(entries_query)}
            delivered = Counter(connection.scalars(delivered_query))
        return [
            ReceiverStatus(name, entries.get(name), notification_logs.get(name), delivered[name])
            for name in sorted(notification_logs.keys() | entries)
        ]

    def put_silence(self, silence: Silence) -> None:
        """Store a silence; it replaces that of the same id."""
        with self._begin() as connection:
            put_silence(connection, silence)

    def silences(self, after: datetime) -> Sequence[Silence]:
        """Return the silences that end later than `after`, soonest first."""
        table = schema.silences
        query = select(table.c.body).where(table.c.ends_at > schema.text(after)).order_by(table.c.ends_at, table.c.id)
        with self._reading() as connection:
            return [loads(body, Silence) for body in connection.scalars(query)]


def put_silence(connection: Connection, silence: Silence) -> None:
    """Store a silence; it replaces that of the same id."""
    row = {"id": silence.id, "ends_at": schema.text(silence.ends_at), "body": dumps(silence)}
    _replace(connection, schema.silences, [row])


def _attempt(row: Any) -> Attempt:
    at = datetime.fromisoformat(row.at)
    return Attempt(row.receiver, row.revision, Reason(row.reason), at, DeliveryState(row.outcome), row.why)


def _key(entry: Delivery) -> dict[str, str]:
    return {"receiver": entry.receiver, "incident": entry.incident}


def _attempt_row(settlement: Settlement) -> dict[str, Any]:
    entry = settlement.entry
    outcome = {"reason": entry.reason.value, "outcome": entry.state.value, "why": entry.why}
    return {**_key(entry), **outcome, "revision": entry.revision, "at": schema.text(settlement.at)}


def _put(connection: Connection, entries: Iterable[Delivery]) -> None:
    states = ((entry, {"state": entry.state.value, "due_at": schema.text(entry.due_at)}) for entry in entries)
    _replace(connection, schema.outbox, [{**_key(entry), **row, "body": dumps(entry)} for entry, row in states])


def _replace(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows into `table`; each replaces the row of the same primary key."""
    if rows:
        connection.execute(upsert(table, connection.dialect.name), rows)
