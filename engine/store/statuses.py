"""What the parts of a run store about themselves, and what the store knows of them: for `tocsin doctor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, func, select

from engine.codec import dumps, loads
from engine.model.notifications import DeliveryState
from engine.model.statuses import JobStatus, NotifierStatus, ReceiverHistory
from engine.store import schema
from engine.store.databases import DatabaseTime, upsert
from engine.store.outbox import BeginTransaction

T = TypeVar("T", JobStatus, NotifierStatus)
_NAMES: Mapping[type, str] = {JobStatus: "job status", NotifierStatus: "notifier status"}  # of their rows in meta


class Statuses:
    """The statuses of the parts. Every method is one transaction.

    Args:
        reading: begins a transaction that only reads.
        begin: begins a transaction that writes.
    """

    def __init__(self, reading: BeginTransaction, begin: BeginTransaction) -> None:
        self._reading, self._begin = reading, begin

    def put(self, status: JobStatus | NotifierStatus) -> None:
        """Store the status of a part in place of its last one."""
        row = {"name": _NAMES[type(status)], "value": dumps(status)}
        with self._begin() as connection:
            connection.execute(upsert(schema.meta, connection.dialect.name), [row])

    def job(self) -> JobStatus | None:
        """Return the last status of a job; None before the first."""
        return self._status(JobStatus)

    def notifier(self) -> NotifierStatus | None:
        """Return the last status of a notifier that sent; None before the first."""
        return self._status(NotifierStatus)

    def lease_holders(self) -> Mapping[str, str]:
        """Return the process that holds each lease now, by the lease's name; for a store on a server."""
        table = schema.leases.c
        with self._reading() as connection:
            rows = connection.execute(select(table.name, table.holder).where(table.until_s > DatabaseTime()))
            return {row.name: row.holder for row in rows}

    def time_s(self) -> float:
        """Return the clock of the database, in seconds since 1970."""
        with self._reading() as connection:
            return float(connection.scalar(select(DatabaseTime())) or 0.0)

    def size_bytes(self) -> int:
        """Return the size of the database; for a store on a server."""
        with self._reading() as connection:
            return int(connection.scalar(select(func.pg_database_size(func.current_database()))) or 0)

    def receiver_histories(self) -> Sequence[ReceiverHistory]:
        """Return the attempts to notify each receiver that was ever tried, in summary, ordered by name."""
        with self._reading() as connection:
            names = connection.scalars(select(schema.attempts.c.receiver).distinct()).all()
            return [_history(connection, name) for name in sorted(names)]

    def _status(self, kind: type[T]) -> T | None:
        with self._reading() as connection:
            body = connection.scalar(select(schema.meta.c.value).filter_by(name=_NAMES[kind]))
            return None if body is None else loads(body, kind)


def _history(connection: Connection, receiver: str) -> ReceiverHistory:
    table = schema.attempts
    own = select(table).filter_by(receiver=receiver)
    newest_first = table.c.number.desc()
    last = connection.execute(own.order_by(newest_first).limit(1)).one()
    delivered = connection.execute(
        own.where(table.c.outcome == DeliveryState.DELIVERED.value).order_by(newest_first).limit(1)
    ).first()
    later = own.where(table.c.number > (delivered.number if delivered is not None else -1))
    failed = connection.execute(later.order_by(table.c.number).limit(1)).first()
    return ReceiverHistory(
        receiver,
        None if delivered is None else datetime.fromisoformat(delivered.at),
        datetime.fromisoformat(last.at),
        last.outcome,
        last.why,
        None if failed is None else datetime.fromisoformat(failed.at),
    )
