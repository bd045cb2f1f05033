"""What is known of a run from outside its process."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
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


@contextmanager
def denied(folder: Path) -> Iterator[None]:
    """Make a folder one that this process may not enter: as another user where it is root."""
    folder.chmod(0)
    of_pytest = takewhile(lambda above: str(above) != tempfile.gettempdir(), folder.parents)  # one more with several workers
    for above in of_pytest if os.geteuid() == 0 else ():
        above.chmod(0o755)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o700)


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


@pytest.mark.parametrize("command", ["doctor", "prove"])
def test_a_user_who_may_not_enter_the_folder_of_the_store_gets_a_sentence(config: Path, command: str) -> None:
    folder = config.parent / "private"
    folder.mkdir()
    config.write_text(CONFIG.replace("state.db", "private/state.db"))
    Store.open(load(config).store).close()
    import_module(f"engine.cli.commands.{command}")  # the other user may not be able to read the code
    with denied(folder):
        result = CliRunner().invoke(application, [command, "-c", str(config)])
    assert (result.exit_code, result.exception is None or isinstance(result.exception, SystemExit)) == (3, True)
    assert "Permission denied; ask as the user of the run" in result.output


def test_a_store_without_a_checkpoint_beside_it_does_not_see_its_sources(config: Path) -> None:
    settings = load(config)
    Store.open(settings.store).close()
    facts = gather(settings)
    assert (facts.unseen, facts.is_here, facts.ready_url) == (str(settings.checkpoint), False, "")
