"""Try a store without creating or changing it: whether it can be opened and written, or created."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from engine.errors import StoreError
from engine.model.inspections import Inspection, fault
from engine.store import schema
from engine.store.file import open_connection
from engine.store.migrations import STEPS
from engine.store.store import store_path

WAIT_S = 2.0  # for another process that is writing


def inspected_store(url: str) -> Inspection:
    """Return whether the store at `url` can be used. Nothing is created, and an older version is not brought up to date."""
    try:
        path = store_path(url)
    except StoreError as error:
        return fault(str(error))
    if path is None:
        return Inspection("in memory; nothing is kept")
    if not path.exists():
        problem = unwritable(path.parent)
        return fault(f"{path} cannot be created: {problem}") if problem else Inspection(f"{path} will be created")
    try:
        return _tried(path)
    except sqlite3.Error as error:
        return fault(f"{path} cannot be used: {error}")


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
        version = int(row[0]) if row and str(row[0]).isdigit() else 0
        if version not in (*STEPS, schema.SCHEMA_VERSION):
            return fault(
                f"{path} was written by another version of tocsin (schema {version}, this one is {schema.SCHEMA_VERSION})"
            )
        (incidents,) = connection.execute(f"SELECT count(*) FROM {schema.incidents.name}").fetchone()  # noqa: S608
        older = "; it will be brought up to date" if version < schema.SCHEMA_VERSION else ""
        return Inspection(f"{path} can be written, {incidents:,} incidents{older}")


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
