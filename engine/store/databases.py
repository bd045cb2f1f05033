"""What differs between the databases that hold a store: how a transaction begins, how a row replaces another, how text is
searched, and which errors pass by themselves. Everything else of the store is the same SQL for both.

SQLite in WAL mode: there is one writer at a time, and readers see the store as of one moment. PostgreSQL is made to do the
same: a writing transaction first takes a lock of the whole store, so the order of what is written is the order in which it is
committed, and a reader that has read up to a mark misses nothing.
"""

from __future__ import annotations

import re
import sqlite3
from abc import abstractmethod
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Column, ColumnElement, Connection, Engine, Table, Text, create_engine, event, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement, GenericFunction
from sqlalchemy.types import Boolean, Double, TypeDecorator, TypeEngine

from engine.errors import RuntimeMissing, StoreAway, StoreError
from engine.store.file import create, open_connection
from engine.store_address import POSTGRESQL, SQLITE, StoreAddress

TRANSACTION = "tocsin_transaction"  # the execution option with the kind of a transaction; without it, one that writes
READING = "reading"  # sees the store as of one moment; neither waits for a writer nor makes one wait
RENEWING = "renewing"  # changes one row, and need not wait for a writer where the database locks rows
CONNECT_S = 10
UNANSWERED_MS = 60_000  # how long what was sent may stay without an answer of the network

_LOCKED = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
# a disk that is full or was taken away, a folder that is mounted again
_AWAY = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL))
_PRIMARY_CODE = 0xFF  # the other bits of SQLite's codes are the extended code

# PostgreSQL documentation, appendix A: connection exceptions, transaction rollbacks (a deadlock), insufficient resources (a
# full disk, too many connections), operator intervention (a shutdown), system errors; and a server that became a replica
_AWAY_CLASSES = ("08", "40", "53", "57", "58")
_LOCK_TIMEOUT, _READ_ONLY = "55P03", "25006"
# libpq has no code for a connection that the server refuses. These do not pass by themselves; where a server speaks another
# language, they are waited for, with the reason
_REFUSAL = re.compile("authentication failed|does not exist|no pg_hba.conf entry|no password supplied|not permitted to log in")
_SESSION = (
    # the checkpoint must never be ahead of the store
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
    # the lock of a writer whose machine vanished is released within a minute; none of this exists on a Unix socket
    "SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
    " set_config('tcp_keepalives_count', '3', false)",
)
_WRITER_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('tocsin store ' || current_schema(), 0))"
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class StoreDatabase(Protocol):
    """The database of one store. `name` is its address as it may be printed; `path` its file, None where it has none."""

    name: str
    path: Path | None
    is_on_a_server: bool

    @abstractmethod
    def engine(self) -> Engine:
        """Return the engine whose transactions begin as a store needs it (see TRANSACTION)."""

    @abstractmethod
    def store_error(self, error: Exception, *, is_new: bool = False) -> StoreError:
        """Return the StoreError for an error of the database, StoreAway for one that may pass by itself.

        Args:
            is_new: the store is being opened: what an operator has to correct does not count as passing by itself.
        """


def database_of(address: StoreAddress, busy_s: float) -> StoreDatabase:
    """Return the database at `address`.

    Args:
        busy_s: how long a transaction waits for another writer before it fails.

    Raises StoreError when it is no address of a store, RuntimeMissing when the package of its database is not installed, and
    UsageError when there is no secret at the reference of its password.
    """
    try:
        url = make_url(address.url)
    except ArgumentError:
        raise StoreError(f"{address}: not a store address; write for example sqlite:///./.tocsin/tocsin.db") from None
    if url.drivername == SQLITE:
        return _SqliteDatabase(address, busy_s)
    if url.drivername == POSTGRESQL:
        return _PostgresDatabase(url if address.password is None else url.set(password=address.password.reveal()), busy_s)
    raise StoreError(f"{address}: a store is at sqlite:///path/to/tocsin.db or postgresql+psycopg://user@host/database")


class _SqliteDatabase:
    """A file, or a store in memory."""

    is_on_a_server = False

    def __init__(self, address: StoreAddress, busy_s: float) -> None:
        self.name, self.path = str(address), address.path
        self._url, self._busy_s = address.url, busy_s
        if self.path is not None:
            try:
                create(self.path)
            except OSError as error:
                raise self.store_error(error) from error

    def engine(self) -> Engine:
        engine = create_engine(self._url, connect_args={"timeout": self._busy_s})

        @event.listens_for(engine, "do_connect")
        def connect(_dialect: object, _record: object, _address: object, options: dict[str, Any]) -> Any:
            arguments = {name: options[name] for name in ("timeout", "check_same_thread") if name in options}
            return open_connection(self.path, **arguments) if self.path is not None else None

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, _record: object) -> None:
            connection.isolation_level = None  # pysqlite would begin too late: transactions are begun below
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")  # the checkpoint must never be ahead of the store

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN" if _kind(connection) == READING else "BEGIN IMMEDIATE")

        return engine

    def store_error(self, error: Exception, *, is_new: bool = False) -> StoreError:
        cause = getattr(error, "orig", None) or error
        code = getattr(cause, "sqlite_errorcode", 0) & _PRIMARY_CODE
        if code in _LOCKED:
            return _locked_error(self.name, cause)
        return _error(self.name, cause, passes=code in _AWAY and not is_new)


class _PostgresDatabase:
    """A schema of a database on a server: the first one of the search path."""

    path: Path | None = None
    is_on_a_server = True

    def __init__(self, url: URL, busy_s: float) -> None:
        self.name = url.render_as_string(hide_password=True)
        self._url, self._busy_ms = url, max(1, round(busy_s * 1000))

    def engine(self) -> Engine:
        try:
            engine = create_engine(self._url, pool_pre_ping=True, connect_args=connect_arguments(self._url))
        except ImportError:
            package = "pip install 'tocsin[postgresql]'"
            raise RuntimeMissing(f"{self.name}: a store in PostgreSQL needs the package psycopg: {package}") from None

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, _record: object) -> None:
            with connection.cursor() as cursor:
                for statement in _SESSION:
                    cursor.execute(statement)
            connection.commit()

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            if _kind(connection) == READING:
                connection.exec_driver_sql(_ONE_MOMENT)
                return
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {self._busy_ms}")
            if _kind(connection) != RENEWING:
                connection.exec_driver_sql(_WRITER_LOCK)

        return engine

    def store_error(self, error: Exception, *, is_new: bool = False) -> StoreError:
        cause = getattr(error, "orig", None) or error
        state = getattr(cause, "sqlstate", None) or ""
        if state == _LOCK_TIMEOUT:
            return _locked_error(self.name, cause)
        if state:
            return _error(self.name, cause, passes=state.startswith(_AWAY_CLASSES) or state == _READ_ONLY)
        is_refusal = _REFUSAL.search(str(cause)) is not None
        return _error(self.name, cause, passes=_is_disconnected(error) and not (is_new and is_refusal))


def connect_arguments(url: URL) -> dict[str, int]:
    """Return the arguments of libpq for `url`, without those that it gives itself: with them a server that vanished is noticed
    within a minute, by both what is read and what is written."""
    defaults = {
        "connect_timeout": CONNECT_S,
        "keepalives": 1,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": UNANSWERED_MS,
    }
    return {name: value for name, value in defaults.items() if name not in url.query}


def _kind(connection: Connection) -> str:
    return str(connection.get_execution_options().get(TRANSACTION, ""))


def _is_disconnected(error: Exception) -> bool:
    """Return whether an error without a code says that there is no connection to the server."""
    return isinstance(error, InterfaceError) or (isinstance(error, DBAPIError) and type(error).__name__ == "OperationalError")


def _locked_error(name: str, cause: BaseException) -> StoreAway:
    return StoreAway(f"{name}: another process is writing to the incident store ({_one_line(cause)})", locked=True)


def _error(name: str, cause: BaseException, *, passes: bool) -> StoreError:
    return (StoreAway if passes else StoreError)(f"{name}: the incident store cannot be used ({_one_line(cause)})")


def _one_line(cause: BaseException) -> str:
    return " ".join(str(cause).split())


@cache
def upsert(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    """Return the statement that inserts rows into `table`, each replacing the row of the same primary key, except in unique
    columns, which keep their values. It is built once: that takes longer than SQLite takes to execute it.

    Args:
        dialect: the name of the connection's dialect.
    """
    statement = (postgresql.insert if dialect == "postgresql" else sqlite.insert)(table)
    kept = [column.name for column in table.columns if column.primary_key or column.unique]
    values = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in kept}
    keys = [column.name for column in table.primary_key]
    if values:
        return statement.on_conflict_do_update(index_elements=keys, set_=values)
    return statement.on_conflict_do_nothing(index_elements=keys)


def index_text(connection: Connection, column: Column[str], name: str) -> None:
    """Create an index that serves Occurs on `column`, where the database has one: trigrams in PostgreSQL, of whose extension
    (it comes with the server) the role must be allowed to make use. Searches work without it, and read every row."""
    if connection.dialect.name != "postgresql":
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            where = connection.exec_driver_sql("SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'pg_trgm'")
            operators = f"{where.scalar_one()}.gin_trgm_ops"
            connection.exec_driver_sql(f"CREATE INDEX {name} ON {column.table.name} USING gin ({column.name} {operators})")
    except DBAPIError as error:
        if error.connection_invalidated:
            raise


class CleanText(TypeDecorator[str]):
    """Text that comes from logs: NUL characters and half surrogate pairs, which PostgreSQL does not store, are replaced. It is
    compared byte by byte, in both databases."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in the database: with the order of bytes, whatever the language of a PostgreSQL database."""
        return dialect.type_descriptor(postgresql.TEXT(collation="C") if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return `value` as it is stored and searched for."""
        if value is None or value.isascii():
            return value.replace("\0", "\ufffd") if value and "\0" in value else value
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


class DatabaseTime(FunctionElement[float]):
    """The present time by the clock of the database: seconds since 1970, not those of the beginning of the transaction."""

    type = Double()
    inherit_cache = True


@compiles(DatabaseTime, "sqlite")
def _time_in_sqlite(_function: DatabaseTime, _compiler: SQLCompiler, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(DatabaseTime, "postgresql")
def _time_in_postgresql(_function: DatabaseTime, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"


class Occurs(GenericFunction[bool]):
    """Whether the text `part` occurs in the column `text`, as it is written."""

    type = Boolean()
    inherit_cache = True
    name = "occurs"

    def __init__(self, text: ColumnElement[str], part: str) -> None:
        super().__init__(text, literal(part, CleanText()))


@compiles(Occurs, "sqlite")
def _occurs_in_sqlite(function: Occurs, compiler: SQLCompiler, **options: Any) -> str:
    return f"(instr({compiler.process(function.clauses, **options)}) > 0)"


@compiles(Occurs, "postgresql")
def _occurs_in_postgresql(function: Occurs, compiler: SQLCompiler, **options: Any) -> str:
    text, part = (compiler.process(clause, **options) for clause in function.clauses)
    # LIKE and not strpos, since an index of trigrams serves it
    escaped = f"replace(replace(replace({part}, '\\', '\\\\'), '%%', '\\%%'), '_', '\\_')"
    return f"({text} LIKE '%%' || {escaped} || '%%')"
