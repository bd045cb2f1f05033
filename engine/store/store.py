"""Open the store, run its transactions and answer its readers.

The job writes while others read. There is one writer at a time; another waits up to BUSY_S for it, and callers that must not
fail go on waiting (outage.py). What differs between the databases is in databases.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import Connection, delete, func, select
from sqlalchemy.exc import SQLAlchemyError

from engine.acting import as_shown
from engine.codec import dumps, loads
from engine.errors import DataLoss, StoreError, StoreLost
from engine.model.acts import RuleStats
from engine.model.considered import ConsideredRule
from engine.model.incidents import Incident, NotEvaluated
from engine.model.past import Past
from engine.model.pictures import KnownPictures
from engine.model.quarantine import DeadLetter
from engine.model.searches import Search
from engine.store import leases, schema
from engine.store.acts import Acts, handlings, shown
from engine.store.considered import considered_of
from engine.store.databases import READING, RENEWING, TRANSACTION, StoreDatabase, database_of, upsert
from engine.store.facts import FactTable
from engine.store.file import StoreFile
from engine.store.leases import HeldLease, Lease
from engine.store.ledger import StoreLedger
from engine.store.migrations import bring_up_to_date, is_up_to_date
from engine.store.outbox import Outbox
from engine.store.past import past_of
from engine.store.proofs import Proofs
from engine.store.retention import prune
from engine.store.search import count_by_rule, count_by_state_and_severity, find, going_on, values_by_facet
from engine.store.stats import rule_stats
from engine.store.statuses import Statuses
from engine.store_address import StoreAddress

BUSY_S = 30.0
PRUNED_AT_ONCE = 100
KEPT_BATCHES = 1000  # of a query


class BatchId(Struct, frozen=True):
    """A batch of a query: the same id means the same input, however often Spark repeats it."""

    query: str
    batch: int


class LastBatch(Struct, frozen=True):
    """The last batch of a query in a store, and when it was stored (ISO 8601)."""

    batch: int
    at: str


class Store:
    """The incident store at one address. Every method that fails raises StoreError: StoreAway when the failure may pass by
    itself.

    Attributes:
        id: the same for the life of the store, and in every copy of it.
        name: the address, without a password.
        path: the file; None for a store in memory or on a server.
        is_on_a_server: whether processes of several machines can use it.
    """

    def __init__(self, database: StoreDatabase) -> None:
        self._database, self._engine = database, database.engine()
        self.name, self.path = database.name, database.path
        self.is_on_a_server = database.is_on_a_server
        self._is_open = False
        self._lease: Lease | None = None
        try:
            with self._store_errors():
                self.id = self._create()
                self._file = StoreFile(self.path) if self.path is not None else None
        except StoreError:
            self._engine.dispose()
            raise
        self._is_open = True

    @classmethod
    def open(cls, address: StoreAddress | str, busy_s: float = BUSY_S) -> Store:
        """Open the store at `address` (as text: its URL); create its folder, file and tables where they are missing.

        Args:
            busy_s: how long each transaction waits for another writer before it fails.

        Raises StoreError; StoreAway only when another process locks the store, or its server is away: other failures at the
        start are mistakes that do not pass. Raises RuntimeMissing when the package of its database is not installed.
        """
        return cls(database_of(address if isinstance(address, StoreAddress) else StoreAddress(address), busy_s))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        if self._file is not None:
            self._file.close()

    def check_file(self) -> None:
        """Raise StoreLost when the file of the store was removed or replaced since it was opened. Cheap."""
        if self._file is not None and (event := self._file.lost()):
            raise StoreLost(f"{self.name}: the incident store was {event} while it was in use")

    def save(self) -> Path:
        """Write the content of a lost store to its path if that is free, else to a file beside it; return where.

        No process may be writing to the store. It cannot be used afterwards.
        """
        with self._store_errors():
            if self._file is None:
                raise OSError("it has no file")
            if self._file.lost() == "removed":
                self._engine.dispose()
            return self._file.save()

    @contextmanager
    def reading(self) -> Iterator[StoreLedger]:
        """Yield a ledger to read from, which sees the store as of one moment."""
        with self._reading() as connection:
            yield StoreLedger(connection)

    @contextmanager
    def batch(self, batch: BatchId, plan: str = "") -> Iterator[StoreLedger]:
        """Yield the ledger for one batch and commit it with the batch's id. After an exception nothing of the batch is stored.

        The last batch may be repeated after a crash: its findings then replace the earlier ones, since the job continues from
        them. Normally they are equal; with other rules, or in a bounded run that ends with the batch, there may be more.

        Args:
            plan: the hash of the rules that the batch was judged by.
        """
        columns = {"plan": plan, "at": schema.text(datetime.now(UTC))}
        with self._begin() as connection:
            row = {"query": batch.query, "batch": batch.batch, **columns}
            connection.execute(upsert(schema.batches, connection.dialect.name), [row])
            _forget_before(connection, batch)
            yield StoreLedger(connection)

    def has_batch(self, batch: BatchId) -> bool:
        """Return whether a batch is stored."""
        with self._reading() as connection:
            return _has(connection, batch)

    def last_batch(self, query: str) -> LastBatch | None:
        """Return the last stored batch of `query`; None without one."""
        table = schema.batches
        statement = select(table.c.batch, table.c.at).filter_by(query=query).order_by(table.c.batch.desc()).limit(1)
        with self._reading() as connection:
            row = connection.execute(statement).first()
            return LastBatch(row.batch, row.at) if row is not None else None

    def written_at(self) -> str | None:
        """Return when a batch was last stored (ISO 8601); None for never."""
        with self._reading() as connection:
            at: str | None = connection.scalar(select(func.max(schema.batches.c.at)))
            return at

    def forget_batches(self, query: str, after: int) -> None:
        """Forget that the batches of `query` later than `after` are stored; their findings stay."""
        table = schema.batches
        with self._begin() as connection:
            connection.execute(delete(table).where(table.c.query == query, table.c.batch > after))

    @contextmanager
    def amending(self) -> Iterator[StoreLedger]:
        """Yield the ledger for a change that belongs to no batch, and commit it."""
        with self._begin() as connection:
            yield StoreLedger(connection)

    def check_readable(self) -> None:
        """Read a row. Raises StoreError when that fails."""
        with self._reading() as connection:
            connection.execute(select(schema.batches.c.batch).limit(1)).first()

    def batches(self) -> int:
        """Return how many batches are stored."""
        with self._reading() as connection:
            return connection.scalar(select(func.count()).select_from(schema.batches)) or 0

    def incidents(self) -> Sequence[Incident]:
        """Return the last revision of every incident as it is shown, in order of opening."""
        table = schema.incidents
        with self._reading() as connection:
            bodies = connection.scalars(select(table.c.body).order_by(table.c.number))
            return shown(connection, (loads(body, Incident) for body in bodies))

    def incident_counts(self) -> Mapping[tuple[str, str], int]:
        """Return how many incidents there are by state and severity; those without any are left out."""
        with self._reading() as connection:
            return count_by_state_and_severity(connection)

    def rule_counts(self) -> Mapping[str, int]:
        """Return how many incidents there are by rule, without those that were merged or retracted."""
        with self._reading() as connection:
            return count_by_rule(connection)

    def facets(self) -> Mapping[str, Sequence[str]]:
        """Return the values by which the list can be narrowed: of `component`, `cluster`, `rule` and `receiver`, sorted."""
        with self._reading() as connection:
            return values_by_facet(connection)

    def rule_stats(self, since: datetime) -> Sequence[RuleStats]:
        """Return how people fared with each rule, by its incidents since `since` (see stats.rule_stats)."""
        with self._reading() as connection:
            return rule_stats(connection, since)

    def going_on(self, since: datetime) -> Sequence[tuple[str, datetime, datetime, int]]:
        """Return severity, first and last hour and number of the incidents that went on at `since` or later, pending ones
        included; not those that were merged or retracted (see search.going_on)."""
        with self._reading() as connection:
            return going_on(connection, since)

    def search(self, search: Search, limit: int, offset: int = 0) -> tuple[Sequence[Incident], Mapping[str, int]]:
        """Return one page of the incidents that match (see search.find) and how many match by state, as of one moment."""
        with self._reading() as connection:
            return find(connection, search, limit, offset)

    def past_of(self, incident: Incident) -> Past:
        """Return the nearest earlier incidents of the rule of a stored incident, with what people wrote (see past.past_of)."""
        with self._reading() as connection:
            return past_of(connection, incident)

    def considered_of(self, incident: Incident) -> Sequence[ConsideredRule]:
        """Return the rules that were considered for a stored incident and are no part of it (see considered.considered_of)."""
        with self._reading() as connection:
            return considered_of(connection, incident)

    def ids(self) -> Sequence[str]:
        """Return the id of every incident, in order of opening."""
        table = schema.incidents
        with self._reading() as connection:
            return connection.scalars(select(table.c.id).order_by(table.c.number)).all()

    def revisions(self, incident_id: str) -> Sequence[Incident]:
        """Return every revision of an incident as the job stored it, first one first; empty when there is no such incident."""
        table = schema.revisions
        with self._reading() as connection:
            bodies = connection.scalars(select(table.c.body).filter_by(id=incident_id).order_by(table.c.revision))
            return [loads(body, Incident) for body in bodies]

    def later_revisions(self, incident_id: str, after: int) -> Iterator[Incident]:
        """Yield the revisions of an incident later than revision `after`, in order, one in memory at a time; each is shown as
        after everything that people did."""
        table = schema.revisions
        chosen = select(table.c.body).filter_by(id=incident_id).where(table.c.revision > after).order_by(table.c.revision)
        with self._reading() as connection:
            handling = handlings(connection, [incident_id]).get(incident_id)
            for body in connection.execution_options(yield_per=50).scalars(chosen):
                yield as_shown(loads(body, Incident), handling)

    def blinds(self) -> Sequence[NotEvaluated]:
        """Return what is not evaluated, over all scopes, ordered by scope, what and why."""
        table = schema.blinds
        with self._reading() as connection:
            rows = connection.execute(
                select(table.c.scope, table.c.what, table.c.why).order_by(table.c.scope, table.c.what, table.c.why)
            )
            return [NotEvaluated(*row) for row in rows]

    def losses(self) -> Sequence[DataLoss]:
        """Return every loss of input, ordered by source and offset."""
        table = schema.losses
        with self._reading() as connection:
            rows = connection.execute(select(table).order_by(*table.primary_key))
            return [DataLoss(row.source, row.lost_from, row.lost_to, row.why) for row in rows]

    def recent_pictures(self, until: datetime) -> Mapping[str, KnownPictures]:
        """Return what is known of each cluster that is asked, by its name, in order."""
        with self._reading() as connection:
            return FactTable(connection).recent(until)

    def put_input_notes(self, sentences: Sequence[str]) -> None:
        """Store how the job reads its sources, in place of what was stored before."""
        row = {"name": "input notes", "value": dumps(list(sentences))}
        with self._begin() as connection:
            connection.execute(upsert(schema.meta, connection.dialect.name), [row])

    def input_notes(self) -> Sequence[str]:
        """Return how the last job read its sources, and what that may miss; a sentence each."""
        with self._reading() as connection:
            body = connection.scalar(select(schema.meta.c.value).filter_by(name="input notes"))
            return loads(body or "[]", list[str])

    def explained_rules(self) -> frozenset[str] | None:
        """Return the rules that other rules explain, by the plan of the last job; None when no job has begun yet."""
        with self._reading() as connection:
            body = connection.scalar(select(schema.meta.c.value).filter_by(name=schema.EXPLAINED))
            return None if body is None else frozenset(loads(body, list[str]))

    def quarantined(self) -> Sequence[DeadLetter]:
        """Return the stored dead letters, newest first."""
        table = schema.quarantine
        with self._reading() as connection:
            return [loads(body, DeadLetter) for body in connection.scalars(select(table.c.body).order_by(table.c.at.desc()))]

    def changed_since(self, mark: int) -> tuple[int, Sequence[Incident]]:
        """Return the next mark, and the incidents with a revision later than `mark` as they are shown now, in order of opening.

        Mark 0 is before everything. Marks only grow, are valid for this store only, and have no other meaning.
        """
        position, table = schema.revisions.c.position, schema.incidents
        changed = select(schema.revisions.c.id).where(position > mark)
        with self._reading() as connection:
            latest = connection.scalar(select(func.max(position))) or 0
            if latest <= mark:
                return mark, ()
            bodies = connection.scalars(select(table.c.body).where(table.c.id.in_(changed)).order_by(table.c.number))
            return latest, shown(connection, (loads(body, Incident) for body in bodies))

    def prune(self, before: datetime, limit: int = PRUNED_AT_ONCE) -> int:
        """Remove at most `limit` incidents that are over and have not changed since `before`, with everything that belongs only
        to them; return how many were removed (see retention.prune)."""
        with self._begin() as connection:
            return prune(connection, before, limit)

    def take_lease(self, name: str, holder: str) -> Lease | HeldLease:
        """Take the lease `name` for `holder`, or return whose it is (see leases.take)."""
        with self._begin() as connection:
            return leases.take(connection, name, holder)

    def renew_lease(self, lease: Lease) -> None:
        """Prolong a lease. Raises LeaseLost when another process has taken it."""
        with self._begin(RENEWING) as connection:
            leases.renew(connection, lease)

    def release_lease(self, lease: Lease) -> None:
        """End a lease now; nothing when it was lost."""
        with self._begin(RENEWING) as connection:
            leases.release(connection, lease)

    def fenced_by(self, lease: Lease) -> Store:
        """Return this store for the work of `lease`: everything that is written by it raises LeaseLost, and changes nothing,
        once another process has taken the lease. It is closed with this one."""
        fenced = copy(self)
        fenced._lease = lease
        return fenced

    def outbox(self) -> Outbox:
        """Return the notifier's part of this store."""
        return Outbox(self._reading, self._begin)

    def acts(self) -> Acts:
        """Return what people did about the incidents of this store."""
        return Acts(self._reading, self._begin)

    def proofs(self) -> Proofs:
        """Return the proofs that were begun."""
        return Proofs(self._reading, self._begin)

    def statuses(self) -> Statuses:
        """Return what the parts of a run store about themselves."""
        return Statuses(self._reading, self._begin)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees the store as of one moment. It neither waits for a writer nor makes one wait."""
        with self._store_errors(), self._engine.connect() as plain:
            connection = plain.execution_options(**{TRANSACTION: READING})
            with connection.begin():
                yield connection

    @contextmanager
    def _begin(self, kind: str = "") -> Iterator[Connection]:
        """Begin a transaction that writes, of one of the kinds of databases.py; its lease is checked first."""
        with self._store_errors(), self._engine.connect() as plain:
            connection = plain.execution_options(**{TRANSACTION: kind})
            with connection.begin():
                if self._lease is not None and not kind:
                    leases.check(connection, self._lease)
                yield connection

    def _create(self) -> str:
        """Bring the tables up to date; return the id of the store, which a new store gets here. A store that is up to date is
        only read: a role that may only read can open it."""
        stored_id = select(schema.meta.c.value).filter_by(name="store")
        with self._reading() as connection:
            if is_up_to_date(connection) and (store_id := connection.scalar(stored_id)):
                return str(store_id)
        with self._begin() as connection:
            bring_up_to_date(connection)
            if connection.scalar(stored_id) is None:
                connection.execute(schema.meta.insert().values(name="store", value=uuid4().hex))
            return str(connection.scalar(stored_id))

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            raise self._database.store_error(error, is_new=not self._is_open) from error


def _forget_before(connection: Connection, batch: BatchId) -> None:
    """Forget batches long before one of the same query: Spark repeats the last one only."""
    table = schema.batches
    connection.execute(delete(table).where(table.c.query == batch.query, table.c.batch <= batch.batch - KEPT_BATCHES))


def _has(connection: Connection, batch: BatchId) -> bool:
    query = select(schema.batches.c.batch).filter_by(query=batch.query, batch=batch.batch)
    return connection.scalar(query) is not None
