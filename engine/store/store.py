"""Opening the store, its transactions, and what readers of it ask.

SQLite in WAL mode: the job writes while others read. One writer at a time; it waits up to BUSY_S for another to finish, and
whoever must not fail waits on from there (patience.py).
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

from engine.codec import loads
from engine.errors import DataLoss, StoreAway, StoreError, StoreLost
from engine.model.incidents import Incident, NotEvaluated
from engine.model.quarantine import DeadLetter
from engine.store import schema
from engine.store.file import StoreFile, connected, create
from engine.store.ledger import StoreLedger
from engine.store.migrations import bring_up_to_date
from engine.store.outbox import Outbox
from engine.store.retention import prune
from engine.store.search import Search, counted, found

BUSY_S = 30.0
PRUNED_AT_ONCE = 100

_LOCKED = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
# a disk that is full or was taken away, a folder that is mounted again
_AWAY = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL))
_PRIMARY_CODE = 0xFF  # the rest of SQLite's codes says which kind of it
_READING = "tocsin_reading"  # the execution option of a transaction that only reads


class BatchId(Struct, frozen=True):
    """A micro-batch: the same pair is the same input, however often Spark hands it over."""

    query: str
    batch: int


class LastBatch(Struct, frozen=True):
    """The last batch of a query that a store holds, and when it was put in (ISO 8601)."""

    batch: int
    at: str


class Store:
    """The incident store at one address. Every method that fails raises StoreError: StoreAway for what may pass by itself.

    `id` is the same as long as the store exists, and in every copy of it. `path` is its file; None: it is in memory.
    """

    def __init__(self, engine: Engine, path: Path | None) -> None:
        self._engine, self.path = engine, path
        self.id = self._create()
        self._file = StoreFile(path) if path is not None else None

    @classmethod
    def open(cls, url: str, busy_s: float = BUSY_S) -> Store:
        """Open the store at `url` (`sqlite:///path`), creating its folder, file and tables when they are not there.

        Args:
            busy_s: how long each transaction waits for another writer before it fails.

        Raises StoreError; StoreAway only when another process holds the store, for a store that is not there yet is a mistake.
        """
        path = store_path(url)
        with _explained(url):
            if path is not None:
                create(path)
        engine = _sqlite(url, path, busy_s)
        try:
            return cls(engine, path)
        except (SQLAlchemyError, sqlite3.Error) as error:
            engine.dispose()
            raise _located(url, error, is_new=True) from error

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()
        if self._file is not None:
            self._file.close()

    def check_file(self) -> None:
        """Raise StoreLost when the file of the store is not the one any more that was opened. Cheap."""
        if self._file is not None and (what := self._file.lost()):
            raise StoreLost(f"{self._engine.url}: the incident store was {what} while it was in use")

    def save(self) -> Path:
        """Write what a lost store held, to its place where that is free, else beside it; return where. The store is of no use
        afterwards, and nobody may be writing to it."""
        with _explained(str(self._engine.url)):
            if self._file is None:
                raise OSError("it has no file")
            if self._file.lost() == "removed":
                self._engine.dispose()
            return self._file.save()

    @contextmanager
    def reading(self) -> Iterator[StoreLedger]:
        """Give a ledger to read from, of one moment."""
        with self._reading() as connection:
            yield StoreLedger(connection)

    @contextmanager
    def batch(self, batch: BatchId, plan: str = "") -> Iterator[StoreLedger]:
        """Give the ledger for one batch and commit it with the batch's id. An exception leaves nothing of the batch behind.

        The last batch may come again after a crash: what it says then holds, for that is what the job goes on with. As a rule
        it is the same and changes nothing; judged by other rules, or by a run that ends with it, it may say more.

        Args:
            plan: the hash of the rules that the batch was judged by.
        """
        judged = {"plan": plan, "at": schema.text(datetime.now(UTC))}
        row = insert(schema.batches).values(query=batch.query, batch=batch.batch, **judged)
        with self._begin() as connection:
            connection.execute(row.on_conflict_do_update(index_elements=["query", "batch"], set_=judged))
            yield StoreLedger(connection)

    def has(self, batch: BatchId) -> bool:
        """Return whether a batch is in."""
        with self._reading() as connection:
            return _has(connection, batch)

    def last_batch(self, query: str) -> LastBatch | None:
        """Return the last batch of `query` that is in, None when none is."""
        table = schema.batches
        chosen = select(table.c.batch, table.c.at).filter_by(query=query).order_by(table.c.batch.desc()).limit(1)
        with self._reading() as connection:
            row = connection.execute(chosen).first()
            return LastBatch(row.batch, row.at) if row is not None else None

    def written_at(self) -> str | None:
        """Return when a batch was last put in (ISO 8601), None when none ever was."""
        with self._reading() as connection:
            at: str | None = connection.scalar(select(func.max(schema.batches.c.at)))
            return at

    def forget_batches(self, query: str, after: int) -> None:
        """Forget that the batches of `query` later than `after` are in; what they found stays."""
        table = schema.batches
        with self._begin() as connection:
            connection.execute(delete(table).where(table.c.query == query, table.c.batch > after))

    @contextmanager
    def amending(self) -> Iterator[StoreLedger]:
        """Give the ledger for one change that no batch brings, and commit it."""
        with self._begin() as connection:
            yield StoreLedger(connection)

    def batches(self) -> int:
        """Return how many batches are in."""
        with self._reading() as connection:
            return connection.scalar(select(func.count()).select_from(schema.batches)) or 0

    def incidents(self) -> Sequence[Incident]:
        """Return the last revision of every incident, in order of opening."""
        table = schema.incidents
        with self._reading() as connection:
            return [loads(body, Incident) for body in connection.scalars(select(table.c.body).order_by(table.c.number))]

    def found(self, search: Search, limit: int, offset: int = 0) -> tuple[Sequence[Incident], Mapping[str, int]]:
        """Return the incidents that fit (see search.found), and how many fit in each state, of one moment."""
        with self._reading() as connection:
            return found(connection, search, limit, offset), counted(connection, search)

    def ids(self) -> Sequence[str]:
        """Return the id of every incident, in order of opening."""
        table = schema.incidents
        with self._reading() as connection:
            return connection.scalars(select(table.c.id).order_by(table.c.number)).all()

    def revisions(self, incident_id: str) -> Sequence[Incident]:
        """Return everything an incident was, first revision first."""
        table = schema.revisions
        with self._reading() as connection:
            bodies = connection.scalars(select(table.c.body).filter_by(id=incident_id).order_by(table.c.revision))
            return [loads(body, Incident) for body in bodies]

    def blinds(self) -> Sequence[NotEvaluated]:
        """Return what cannot be judged, over all scopes."""
        table = schema.blinds
        with self._reading() as connection:
            rows = connection.execute(select(table.c.scope, table.c.what, table.c.why).order_by(*table.primary_key))
            return [NotEvaluated(*row) for row in rows]

    def losses(self) -> Sequence[DataLoss]:
        """Return every loss known, by source."""
        table = schema.losses
        with self._reading() as connection:
            rows = connection.execute(select(table).order_by(*table.primary_key))
            return [DataLoss(row.source, row.lost_from, row.lost_to, row.why) for row in rows]

    def quarantined(self) -> Sequence[DeadLetter]:
        """Return the dead letters that are kept, newest first."""
        table = schema.quarantine
        with self._reading() as connection:
            return [loads(body, DeadLetter) for body in connection.scalars(select(table.c.body).order_by(table.c.at.desc()))]

    def changed_since(self, mark: int) -> tuple[int, Sequence[Incident]]:
        """Return the incidents with a revision later than `mark` as they are now, in order of opening, and the next mark.

        0 is before everything; a mark means nothing but "later" and belongs to this store.
        """
        row, table = literal_column("rowid", Integer), schema.incidents
        fresh = select(schema.revisions.c.id).where(row > mark)
        with self._reading() as connection:
            latest = connection.scalar(select(func.max(row)).select_from(schema.revisions)) or 0
            if latest <= mark:
                return mark, ()
            bodies = connection.scalars(select(table.c.body).where(table.c.id.in_(fresh)).order_by(table.c.number))
            return latest, [loads(body, Incident) for body in bodies]

    def prune(self, before: datetime, limit: int = PRUNED_AT_ONCE) -> int:
        """Remove at most `limit` incidents that are over and have not changed since `before`, with all that is known of them
        only, and the batches and silences of that time; return how many incidents (see retention.prune)."""
        with self._begin() as connection:
            return prune(connection, before, limit)

    def outbox(self) -> Outbox:
        """Return what the notifier owns of this store."""
        return Outbox(self._reading, self._begin)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Begin a transaction that sees one moment, and neither waits for a writer nor makes one wait."""
        with _explained(str(self._engine.url)), self._engine.connect() as plain:
            connection = plain.execution_options(**{_READING: True})
            with connection.begin():
                yield connection

    @contextmanager
    def _begin(self) -> Iterator[Connection]:
        with _explained(str(self._engine.url)), self._engine.begin() as connection:
            yield connection

    def _create(self) -> str:
        """Bring the tables up to date and return the id of the store, which is given to it here."""
        row = insert(schema.meta).values(name="store", value=uuid4().hex)
        with self._engine.begin() as connection:
            bring_up_to_date(connection)
            connection.execute(row.on_conflict_do_nothing())
            return str(connection.scalar(select(schema.meta.c.value).filter_by(name="store")))


def store_path(url: str) -> Path | None:
    """Return the file of the store at `url`, None for one in memory. Raises StoreError when it is not a store's address."""
    try:
        address = make_url(url)
    except ArgumentError:
        raise StoreError(f"{url}: not a store address; write for example sqlite:///./.tocsin/tocsin.db") from None
    if address.get_backend_name() != "sqlite":
        raise StoreError(f"{url}: only sqlite stores are available in this version")
    return Path(address.database) if address.database and address.database != ":memory:" else None


def _has(connection: Connection, batch: BatchId) -> bool:
    known = select(schema.batches.c.batch).filter_by(query=batch.query, batch=batch.batch)
    return connection.scalar(known) is not None


def _sqlite(url: str, path: Path | None, busy_s: float) -> Engine:
    engine = create_engine(url, connect_args={"timeout": busy_s})

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _address: object, options: dict[str, Any]) -> Any:
        how = {name: options[name] for name in ("timeout", "check_same_thread") if name in options}
        return connected(path, **how) if path is not None else None

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
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _located(url, error) from error


def _located(url: str, error: Exception, *, is_new: bool = False) -> StoreError:
    """Return the StoreError for `error`; one of a store that `is_new` may pass by itself only when the store is locked."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code in _LOCKED:
        return StoreAway(f"{url}: another process is writing to the incident store ({cause})", locked=True)
    sentence = f"{url}: the incident store cannot be used ({cause})"
    return StoreAway(sentence) if code in _AWAY and not is_new else StoreError(sentence)
