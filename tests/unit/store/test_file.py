"""The file of a store that is removed or replaced under the process that has it open: noticed, and what it held is saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import StoreError, StoreLost
from engine.store import Store
from tests.unit.store.test_store import SILENT, put


def opened(folder: Path) -> Store:
    store = Store.open(f"sqlite:///{folder}/state.db")
    put(store, 0, SILENT)
    return store


def held(path: Path) -> list[str]:
    store = Store.open(f"sqlite:///{path}")
    ids = list(store.ids())
    store.close()
    return ids


def test_a_store_has_an_id_that_stays(tmp_path: Path) -> None:
    first = opened(tmp_path)
    again, other = Store.open(f"sqlite:///{tmp_path}/state.db"), Store.open(f"sqlite:///{tmp_path}/other.db")
    assert first.id == again.id != other.id
    for store in (first, again, other):
        store.close()


@pytest.mark.parametrize("also", [(), ("-wal", "-shm")], ids=["alone", "with its WAL"])
def test_what_a_removed_store_held_is_put_back_in_its_place(tmp_path: Path, also: tuple[str, ...]) -> None:
    store = opened(tmp_path)
    store.check_file()
    for end in ("", *also):
        (tmp_path / f"state.db{end}").unlink()
    with pytest.raises(StoreLost, match="the incident store was removed while it was in use"):
        store.check_file()
    assert store.save() == tmp_path / "state.db"
    assert held(tmp_path / "state.db") == [SILENT.id]
    assert {path.name for path in tmp_path.iterdir()} == {"state.db"}


def test_a_removed_folder_is_made_again(tmp_path: Path) -> None:
    store = opened(tmp_path / "state")
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    for path in (tmp_path / "elsewhere").iterdir():
        path.unlink()
    store.save()
    assert held(tmp_path / "state" / "state.db") == [SILENT.id]


def test_beside_a_store_that_took_its_place_what_it_held_is_kept_under_another_name(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (tmp_path / "new").mkdir()
    other = Store.open(f"sqlite:///{tmp_path}/new/state.db")
    other.close()
    (tmp_path / "new" / "state.db").replace(tmp_path / "state.db")
    with pytest.raises(StoreLost, match="the incident store was replaced"):
        store.check_file()
    kept = store.save()
    assert kept.name.startswith("state.db.saved-")
    assert held(kept) == [SILENT.id]
    assert kept.stat().st_mode & 0o077 == 0


def test_a_connection_to_a_removed_store_makes_no_empty_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store._engine.dispose()
    (tmp_path / "state.db").unlink()
    with pytest.raises(StoreError, match="cannot be used"):
        store.ids()
    assert not (tmp_path / "state.db").exists()
    store.close()
