"""Try a store without creating or changing it: whether it can be opened and written, or created."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import func, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from engine.errors import StoreAway
from engine.model.inspections import Inspection, fault
from engine.store import schema
from engine.store.databases import StoreDatabase, database_of
from engine.store.file import open_connection
from engine.store.migrations import STEPS
from engine.store_address import StoreAddress

WAIT_S = 2.0  # for another process that is writing


def inspected_store(address: StoreAddress) -> Inspection:
    """Return whether the store at `address` can be used. Nothing is created, and an older version is not brought up to date.

    Raises UsageError when there is no secret at the reference of its password, RuntimeMissing when a package is missing.
    """
    path = address.path
    if path is None:
        return _of_server(database_of(address, WAIT_S))
    if not path.exists():
        problem = unwritable(path.parent)
        return fault(f"{path} cannot be created: {problem}") if problem else Inspection(f"{path} will be created")
    try:
        return _tried(path)
    except sqlite3.Error as error:
        return fault(f"{path} cannot be used: {error}")


def stored_version(address: StoreAddress) -> int:
    """Return the schema version of the store at `address`, which must be there; 0 when it has none.

    Raises StoreError, UsageError and RuntimeMissing as inspected_store.
    """
    database = database_of(address, WAIT_S)
    engine = database.engine()
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table(schema.meta.name):
                return 0
            stored = str(connection.scalar(select(schema.meta.c.value).filter_by(name="schema")))
            return int(stored) if stored.isdigit() else 0
    except SQLAlchemyError as error:
        raise database.store_error(error) from error
    finally:
        engine.dispose()


def _of_server(database: StoreDatabase) -> Inspection:
    engine = database.engine()
    try:
        with engine.begin() as connection:
            may_create = connection.scalar(text("SELECT has_schema_privilege(current_schema(), 'CREATE')"))
            is_empty = not inspect(connection).has_table(schema.meta.name)
            stored = None if is_empty else connection.scalar(select(schema.meta.c.value).filter_by(name="schema"))
            if not may_create and stored != str(schema.SCHEMA_VERSION):
                return fault(f"{database.name}: this user may not create tables in the schema; grant CREATE on it")
            if is_empty:
                return Inspection(f"{database.name} is empty and can be written")
            if not connection.scalar(text(f"SELECT has_table_privilege('{schema.batches.name}', 'INSERT, DELETE')")):
                return fault(f"{database.name}: this user may not write to its tables; grant INSERT, UPDATE and DELETE on them")
            incidents = connection.scalar(select(func.count()).select_from(schema.incidents)) or 0
            return _of_version(database.name, stored, incidents)
    except SQLAlchemyError as error:
        failure = database.store_error(error, is_new=True)
        is_locked = isinstance(failure, StoreAway) and failure.locked
        return (
            Inspection(f"{database.name} is open; another process is writing to it now") if is_locked else fault(str(failure))
        )
    finally:
        engine.dispose()


def _of_version(name: str, stored: object, incidents: int) -> Inspection:
    version = int(str(stored)) if str(stored).isdigit() else 0
    if version not in (*STEPS, schema.SCHEMA_VERSION):
        return fault(f"{name} was written by another version of tocsin (schema {version}, this one is {schema.SCHEMA_VERSION})")
    older = "; it will be brought up to date" if version < schema.SCHEMA_VERSION else ""
    return Inspection(f"{name} can be written, {incidents:,} incidents{older}")


def _tried(path: Path) -> Inspection:
    with closing(open_connection(path, timeout=WAIT_S)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            return Inspection(f"{path} is open; another process is writing to it now")
        if not tables:
            return Inspection(f"{path} is empty and can be written")
        if schema.meta.name not in tables:
            return fault(f"{path} is a database, but no incident store of tocsin; name another file")
        row = connection.execute(f"SELECT value FROM {schema.meta.name} WHERE name = 'schema'").fetchone()  # noqa: S608
        (incidents,) = connection.execute(f"SELECT count(*) FROM {schema.incidents.name}").fetchone()  # noqa: S608
        return _of_version(str(path), row[0] if row else None, incidents)


def unwritable(folder: Path) -> str:
    """Return why nothing can be written into `folder`, which is created where it is missing; empty when something can."""
    place = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    if not place.is_dir():
        return f"{place} is no folder"
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0" * 4096)
    except OSError as error:
        return f"{place}: {error.strerror}"
    return ""
