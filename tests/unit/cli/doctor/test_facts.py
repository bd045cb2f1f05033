"""What is known of a run from outside its process."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli.doctor.facts import gather
from engine.cli.main import application
from engine.config import load
from engine.store import Store, schema
from engine.store.locks import LockHeld, ProcessLock, lock_holder
from engine.store.probing import stored_version

CONFIG = "sources:\n  - {type: files, paths: [a.log]}\nstore: sqlite:///state.db\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(CONFIG)
    return path


def test_a_store_is_neither_created_nor_brought_up_to_date(config: Path) -> None:
    settings = load(config)
    facts = gather(settings)
    assert facts.store is None
    assert "no run has used it yet" in facts.store_error
    assert settings.store.path is not None
    assert not settings.store.path.exists()
    Store.open(settings.store).close()
    with sqlite3.connect(settings.store.path) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", [str(schema.SCHEMA_VERSION - 1)])
    assert "the next start brings it up to date" in gather(settings).store_error
    assert stored_version(settings.store) == schema.SCHEMA_VERSION - 1


def test_a_store_that_is_no_database_is_not_reached(config: Path) -> None:
    settings = load(config)
    assert settings.store.path is not None
    settings.store.path.write_bytes(b"no database" * 1000)
    assert "cannot be used" in gather(settings).store_error


def test_who_is_at_work_is_known_by_the_locks(config: Path) -> None:
    settings = load(config)
    Store.open(settings.store).close()
    path = settings.store.path
    assert path is not None
    locks = [ProcessLock(path.with_name(f"state.db{end}"), "it") for end in (".lock", ".notifier.lock")]
    facts = gather(settings)
    assert facts.store is not None
    assert facts.store.holders.keys() == {"job", "notifier"}
    for lock in locks:
        lock.release()
    freed = gather(settings)
    assert freed.store is not None
    assert not freed.store.holders


def test_a_lock_that_is_looked_at_can_be_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert lock_holder(path) is None
    lock = ProcessLock(path, "it")
    assert str(lock_holder(path)).startswith("process ")
    with pytest.raises(LockHeld):
        ProcessLock(path, "it")
    lock.release()
    assert lock_holder(path) is None
    ProcessLock(path, "it").release()


def test_what_does_not_run_ends_with_exit_code_3(config: Path) -> None:
    result = CliRunner().invoke(application, ["doctor", "-c", str(config)])
    assert (result.exit_code, "DOWN" in result.output) == (3, True)
    assert "tocsin config check" in result.output
