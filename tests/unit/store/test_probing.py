"""A store is tried without being created or changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.model.diagnostics import Level
from engine.model.inspections import Inspection
from engine.store import Store
from engine.store.probing import inspected_store, unwritable
from engine.store_address import StoreAddress
from tests.servers.postgresql import PASSWORD, USER

if TYPE_CHECKING:
    from tests.servers.postgresql import PostgresServer


def inspected(url: str) -> Inspection:
    return inspected_store(StoreAddress(url))


def test_a_store_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "below" / "tocsin.db"
    assert inspected(f"sqlite:///{path}").sentence == f"{path} will be created"
    assert [*tmp_path.iterdir()] == []


def test_a_store_in_use_can_be_tried(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    store = Store.open(f"sqlite:///{path}")
    assert inspected(f"sqlite:///{path}").sentence == f"{path} can be written, 0 incidents"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        busy = inspected(f"sqlite:///{path}")
        writer.rollback()
    assert (busy.level, "another process is writing" in busy.sentence) == (None, True)
    store.close()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    path.write_text("not a database, but a text that is long enough to be read as one" * 40)
    text = inspected(f"sqlite:///{path}")
    assert (text.level, "not a database" in text.sentence) == (Level.ERROR, True)
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE songs (name)")
    assert "no incident store" in inspected(f"sqlite:///{path}").sentence


def test_a_store_of_another_version_is_named_and_an_older_one_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.db"
    Store.open(f"sqlite:///{path}").close()
    for version, sentence in (("99", "another version"), ("6", "brought up to date")):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (version,))
        assert sentence in inspected(f"sqlite:///{path}").sentence
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (version,)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert unwritable(tmp_path / "file" / "below") == f"{tmp_path / 'file'} is no folder"
    assert unwritable(tmp_path / "new") == ""
    assert unwritable(Path("/proc/self")).startswith("/proc/self: ")
    assert inspected(f"sqlite:///{tmp_path}/file/below/t.db").level is Level.ERROR


@pytest.mark.server
def test_a_store_on_a_server_is_looked_at_without_tables_being_made(postgresql: PostgresServer) -> None:
    url = postgresql.empty_store()
    assert "is empty and can be written" in inspected(url).sentence
    assert "is empty and can be written" in inspected(url).sentence, "nothing was made"
    Store.open(url).close()
    assert "can be written, 0 incidents" in inspected(url).sentence
    gone = inspected(postgresql.address.replace("/postgres", "/nothing"))
    assert (gone.level, "no password supplied" in gone.sentence) == (Level.ERROR, True)


@pytest.mark.server
def test_a_user_needs_the_right_to_create_tables_only_while_there_are_none(postgresql: PostgresServer) -> None:
    url = postgresql.empty_store()
    name = url.rpartition("%3D")[2]
    limited = url.replace(f"//{USER}:{PASSWORD}@", "//clerk:of-the-store@")
    with postgresql.connect() as connection:
        connection.execute("CREATE ROLE clerk LOGIN PASSWORD 'of-the-store'")
        connection.execute(f"GRANT USAGE ON SCHEMA {name} TO clerk".encode())
        assert "may not create tables" in inspected(limited).sentence
        Store.open(url).close()
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO clerk".encode())
        assert "may not write to its tables" in inspected(limited).sentence
        connection.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO clerk".encode())
    assert "can be written, 0 incidents" in inspected(limited).sentence
