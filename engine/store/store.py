"""Open the store, run its transactions and answer its readers.

SQLite in WAL mode: the job writes while others read. There is one writer at a time; another waits up to BUSY_S for it, and
callers that must not fail go on waiting (outage.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct
from sqlalchemy import Connection, Engine, Integer, create_engine, delete, event, func, literal_column, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from engine.acting import as_shown
from engine.codec import dumps, loads
from engine.errors import DataLoss, StoreAway, StoreError, StoreLost
from engine.model.acts import RuleStats
from engine.model.incidents import Incident, NotEvaluated
from engine.model.quarantine import DeadLetter
from engine.model.searches import Search
from engine.store import schema
from engine.store.acts import Acts, handlings, shown
from engine.store.file import StoreFile, create, open_connection
from engine.store.ledger import StoreLedger
from engine.store.migrations import bring_up_to_date
from engine.store.outbox import Outbox
from engine.store.retention import prune
from engine.store.search import count_by_state, count_by_state_and_severity, find, going_on, values_by_facet
from engine.store.stats import rule_stats

BUSY_S = 30.0
PRUNED_AT_ONCE = 100

_LOCKED = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
# a disk that is full or was taken away, a folder that is mounted again
_AWAY = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL))
_PRIMARY_CODE = 0xFF  # the other bits of SQLite's codes are the extended code
_READING = "tocsin_reading"  # the execution option of a transaction that only reads


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
        path: the file; None for a store in memory.
    """

    def __init__(self, engine: Engine, path: Path | None) -> None:
        self._engine, self.path = engine, path
        self.id = self._create()
        self._file = StoreFile(path) if path is not None else None

    @classmethod
    def open(cls, url: str, busy_s: float = BUSY_S) -> Store:
        """Open the store at `url` (`sqlite:///path`); create its folder, file and tables where they are missing.

        Args:
            busy_s: how long each transaction waits for another writer before it fails.

        Raises StoreError; StoreAway only when another process locks the store: other failures at the start are mistakes that do
        not pass.
        """
        path = store_path(url)
        with _store_errors(url):
            if path is not None:
                create(path)
        engine = _sqlite(url, path, busy_s)
        try:
            return cls(engine, path)
        except (SQLAlchemyError, sqlite3.Error) as error:
            engine.dispose()
            raise _store_error(url, error, is_new=True) from error

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        if self._file is not None:
            self._file.close()

    def check_file(self) -> None:
        """Raise StoreLost when the file of the store was removed or replaced since it was opened. Cheap."""
        if self._file is not None and (event := self._file.lost()):
            raise StoreLost(f"{self._engine.url}: the incident store was {event} while it was in use")

    def save(self) -> Path:
        """Write the content of a lost store to its path if that is free, else to a file beside it; return where.

        No process may be writing to the store. It cannot be used afterwards.
        """
        with _store_errors(str(self._engine.url)):
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
        row = insert(schema.batches).values(query=batch.query, batch=batch.batch, **columns)
        with self._begin() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["query", "batch"], set_=columns))
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

    def facets(self) -> Mapping[str, Sequence[str]]:
        """Return the values by which the list can be narrowed: of `component`, `cluster`, `rule` and `receiver`, sorted."""
        with self._reading() as connection:
            return values_by_facet(connection)

    def rule_stats(self, since: datetime) -> Sequence[RuleStats]:
        """Return how people fared with each rule, by its incidents since `since` (see stats.rule_stats)."""
        with self._reading() as connection:
            return rule_stats(connection, since)

    def going_on(self, since: datetime) -> Sequence[tuple[str, datetime, datetime]]:
        """Return severity, first and last time of the incidents that went on at `since` or later, pending ones included; not
        those that were merged or retracted."""
        with self._reading() as connection:
            return going_on(connection, since)

    def search(self, search: Search, limit: int, offset: int = 0) -> tuple[Sequence[Incident], Mapping[str, int]]:
        """Return one page of the incidents that match (see search.find) and how many match by state, as of one moment."""
        with self._reading() as connection:
            return find(connection, search, limit, offset), count_by_state(connection, search)

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
            rows = connection.execute(select(table.c.scope, table.c.what, table.c.why).order_by(*table.primary_key))
            return [NotEvaluated(*row) for row in rows]

    def losses(self) -> Sequence[DataLoss]:
        """Return every loss of input, ordered by source and offset."""
        table = schema.losses
        with self._reading() as connection:
            rows = connection.execute(select(table).order_by(*table.primary_key))
            return [DataLoss(row.source, row.lost_from, row.lost_to, row.why) for row in rows]

    def put_input_notes(self, sentences: Sequence[str]) -> None:
        """Store how the job reads its sources, in place of what was stored before."""
        row = insert(schema.meta).values(name="input notes", value=dumps(list(sentences)))
        with self._begin() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["name"], set_={"value": row.excluded.value}))

    def input_notes(self) -> Sequence[str]:
        """Return how the last job read its sources, and what that may miss; a sentence each."""
        with self._reading() as connection:
            body = connection.scalar(select(schema.meta.c.value).filter_by(name="input notes"))
            return loads(body or "[]", list[str])

    def quarantined(self) -> Sequence[DeadLetter]:
        """Return the stored dead letters, newest first."""
        table = schema.quarantine
        with self._reading() as connection:
            return [loads(body, DeadLetter) for body in connection.scalars(select(table.c.body).order_by(table.c.at.desc()))]

    def changed_since(self, mark: int) -> tuple[int, Sequence[Incident]]:
        """Return the next mark, and the incidents with a revision later than `mark` as they are shown now, in order of opening.

        Mark 0 is before everything. Marks only grow, are valid for this store only, and have no other meaning.
        """
        row, table = literal_column("rowid", Integer), schema.incidents
        changed = select(schema.revisions.c.id).where(row > mark)
        with self._reading() as connection:
            latest = connection.scalar(select(func.max(row)).select_from(schema.revisions)) or 0
            if latest <= mark:
                return mark, ()
            bodies = connection.scalars(select(table.c.body).where(table.c.id.in_(changed)).order_by(table.c.number))
            return latest, shown(connection, (loads(body, Incident) for body in bodies))

    def prune(self, before: datetime, limit: int = PRUNED_AT_ONCE) -> int:
        """Remove at most `limit` incidents that are over and have not changed since `before`, with everything that belongs only
        to them; return how many were removed (see retention.prune)."""
        with self._begin() as connection:
            return prune(connection, before, limit)

    def outbox(self) -> Outbox:
        """Return the notifier's part of this store."""
        return Outbox(self._reading, self._begin)

    def acts(self) -> Acts:
        """Return what people did about the incidents of this store."""
        return Acts(self._reading, self._begin)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees the store as of one moment. It neither waits for a writer nor makes one wait."""
        with _store_errors(str(self._engine.url)), self._engine.connect() as plain:
            connection = plain.execution_options(**{_READING: True})
            with connection.begin():
                yield connection

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        with _store_errors(str(self._engine.url)), self._engine.begin() as connection:
            yield connection

    def _create(self) -> str:
        """Bring the tables up to date; return the id of the store, which a new store gets here."""
        row = insert(schema.meta).values(name="store", value=uuid4().hex)
        with self._engine.begin() as connection:
            bring_up_to_date(connection)
            connection.execute(row.on_conflict_do_nothing())
            return str(connection.scalar(select(schema.meta.c.value).filter_by(name="store")))


def store_path(url: str) -> Path | None:
    """Return the file of the store at `url`; None for a store in memory. Raises StoreError when `url` is no store address."""
    try:
        address = make_url(url)
    except ArgumentError:
        raise StoreError(f"{url}: not a store address; write for example sqlite:///./.tocsin/tocsin.db") from None
    if address.get_backend_name() != "sqlite":
        raise StoreError(f"{url}: only sqlite stores are available in this version")
    return Path(address.database) if address.database and address.database != ":memory:" else None


def _has(connection: Connection, batch: BatchId) -> bool:
    query = select(schema.batches.c.batch).filter_by(query=batch.query, batch=batch.batch)
    return connection.scalar(query) is not None


def _sqlite(url: str, path: Path | None, busy_s: float) -> Engine:
    engine = create_engine(url, connect_args={"timeout": busy_s})

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _address: object, options: dict[str, Any]) -> Any:
        arguments = {name: options[name] for name in ("timeout", "check_same_thread") if name in options}
        return open_connection(path, **arguments) if path is not None else None

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # pysqlite would begin too late: transactions are begun below
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # the checkpoint must never be ahead of the store

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(_READING) else "BEGIN IMMEDIATE")

    return engine


@contextmanager
def _store_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _store_error(url, error) from error


def _store_error(url: str, error: Exception, *, is_new: bool = False) -> StoreError:
    """Return the StoreError for `error`. While the store is opened (`is_new`), only a lock counts as passing by itself."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code in _LOCKED:
        return StoreAway(f"{url}: another process is writing to the incident store ({cause})", locked=True)
    sentence = f"{url}: the incident store cannot be used ({cause})"
    return StoreAway(sentence) if code in _AWAY and not is_new else StoreError(sentence)
