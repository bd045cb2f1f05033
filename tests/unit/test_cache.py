"""What is kept on disk is whole or not there, and nothing breaks without it."""

from __future__ import annotations

import os
from pathlib import Path

from engine.cache import KEPT, Cache


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new")
    assert cache.load("plan-1.json") is None
    cache.store("plan-1.json", b"{}")
    assert cache.load("plan-1.json") == b"{}"
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["plan-1.json"]


def test_what_is_used_stays_however_long_ago_it_was_written(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store("plan-builtin.json", b"{}")
    os.utime(tmp_path / "plan-builtin.json", (0, 0))
    assert cache.load("plan-builtin.json") == b"{}"
    for number in range(KEPT):
        cache.store(f"plan-{number}.json", b"")
        os.utime(tmp_path / f"plan-{number}.json", (number + 1, number + 1))
    assert cache.load("plan-builtin.json") == b"{}"
    assert cache.load("plan-0.json") is None


def test_the_oldest_of_a_kind_are_dropped(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.store("plan-0.json", b"{}")
    for number in range(KEPT + 3):
        cache.store(f"screen-{number}.hs", b"")
        os.utime(tmp_path / f"screen-{number}.hs", (number, number))
    cache.store("screen-new.hs", b"")
    assert cache.load("plan-0.json") == b"{}"
    assert len(list(tmp_path.glob("screen-*"))) == KEPT
    assert cache.load("screen-0.hs") is None
    assert cache.load("screen-new.hs") == b""


def test_a_folder_that_cannot_be_made_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.store("plan-1.json", b"{}")
    assert cache.load("plan-1.json") is None
