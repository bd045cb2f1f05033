"""Leases: one process at a time does a kind of work with a store, on whichever machine it runs.

A lease lasts LEASE_S after it was taken or renewed last, by the clock of the database. Each holder gets a higher token than the
one before, and checks it within each of its transactions: a process that was stopped for a while cannot write after another
one has taken over.
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection, select, update

from engine.errors import LeaseLost
from engine.store import schema
from engine.store.databases import DatabaseTime, upsert

LEASE_S = 9.0
RENEW_EVERY_S = 3.0
_CLOCK_ERROR_S = 1.0


class Lease(Struct, frozen=True):
    """A lease that this process took. `name` is the work: `job` or `notifier`; `holder` names the process for people."""

    name: str
    holder: str
    token: int


class HeldLease(Struct, frozen=True):
    """A lease that another process holds. `until_s` grows when it is renewed."""

    name: str
    holder: str
    until_s: float


def take(connection: Connection, name: str, holder: str) -> Lease | HeldLease:
    """Take the lease `name` if nobody holds it, or its holder has not renewed it in time; else return whose it is.

    The transaction must be one that writes, so that no write of the holder before is under way.
    """
    table = schema.leases
    now_s = float(connection.scalar(select(DatabaseTime())) or 0.0)
    row = connection.execute(select(table).filter_by(name=name)).first()
    # a time beyond any lease is from before the clock of the database was set back
    if row is not None and now_s < row.until_s <= now_s + LEASE_S + _CLOCK_ERROR_S:
        return HeldLease(name, row.holder, row.until_s)
    lease = Lease(name, holder, 1 if row is None else row.token + 1)
    values = {"name": name, "holder": holder, "token": lease.token, "until_s": now_s + LEASE_S}
    connection.execute(upsert(table, connection.dialect.name), [values])
    return lease


def renew(connection: Connection, lease: Lease) -> None:
    """Prolong a lease. Raises LeaseLost when another process has taken it."""
    if not _set_until(connection, lease, LEASE_S):
        raise _lost(connection, lease)


def release(connection: Connection, lease: Lease) -> None:
    """End a lease now, so that another process need not wait for its end; nothing when it was lost."""
    _set_until(connection, lease, 0.0)


def check(connection: Connection, lease: Lease) -> None:
    """Raise LeaseLost when another process has taken `lease`. In a transaction that writes, none can until its end."""
    table = schema.leases
    if connection.scalar(select(table.c.token).filter_by(name=lease.name)) != lease.token:
        raise _lost(connection, lease)


def _set_until(connection: Connection, lease: Lease, in_s: float) -> bool:
    statement = update(schema.leases).filter_by(name=lease.name, token=lease.token).values(until_s=DatabaseTime() + in_s)
    return connection.execute(statement).rowcount > 0


def _lost(connection: Connection, lease: Lease) -> LeaseLost:
    table = schema.leases
    holder = connection.scalar(select(table.c.holder).filter_by(name=lease.name))
    taker = f"the {lease.name} of {holder}" if holder else "nobody, since the store was emptied or replaced"
    return LeaseLost(f"this {lease.name} ({lease.holder}) was taken over by {taker}: it writes nothing any more")
