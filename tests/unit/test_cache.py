"""What is kept on disk is whole or not there, and nothing breaks without it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cache import KEPT, DiskCache


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "new")
    assert cache.load("plan-1.json") is None
    cache.store("plan-1.json", b"{}")
    assert cache.load("plan-1.json") == b"{}"
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["plan-1.json"]


def test_what_is_used_stays_however_long_ago_it_was_written(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.store("plan-builtin.json", b"{}")
    os.utime(tmp_path / "plan-builtin.json", (0, 0))
    assert cache.load("plan-builtin.json") == b"{}"
    for number in range(KEPT):
        cache.store(f"plan-{number}.json", b"")
        os.utime(tmp_path / f"plan-{number}.json", (number + 1, number + 1))
    assert cache.load("plan-builtin.json") == b"{}"
    assert cache.load("plan-0.json") is None


def test_the_oldest_of_a_kind_are_dropped(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
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
    cache = DiskCache(tmp_path / "file")
    cache.store("plan-1.json", b"{}")
    assert cache.load("plan-1.json") is None


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used_and_why_is_said(tmp_path: Path, mode: int) -> None:
    cache = DiskCache(tmp_path / "tocsin")
    cache.store("plan-1.json", b"{}")
    assert cache.refusal is None
    (tmp_path / "tocsin").chmod(mode)
    assert cache.load("plan-1.json") is None
    cache.store("plan-2.json", b"{}")
    assert [file.name for file in (tmp_path / "tocsin").iterdir()] == ["plan-1.json"]
    assert cache.refusal is not None and "other users can write to it" in cache.refusal


def test_a_file_that_others_can_write_to_is_not_read(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.store("plan-1.json", b"{}")
    (tmp_path / "plan-1.json").chmod(0o666)
    assert cache.load("plan-1.json") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "tocsin")
    cache.store("plan-1.json", b"{}")
    os.chown(tmp_path / "tocsin", 4242, 4242)
    assert cache.load("plan-1.json") is None
    assert cache.refusal is not None and "another user" in cache.refusal


def test_the_folder_and_what_is_in_it_are_for_their_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        DiskCache(tmp_path / "cache" / "tocsin").store("plan-1.json", b"{}")
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"cache": 0o700, "cache/tocsin": 0o700, "cache/tocsin/plan-1.json": 0o600}


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b" ", lambda data: b"{}", lambda data: b""])
def test_what_is_not_what_was_stored_is_made_anew(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    cache, file = DiskCache(tmp_path), tmp_path / "plan-1.json"
    cache.store("plan-1.json", b'{"a": 1}')
    file.write_bytes(damage(file.read_bytes()))
    assert cache.load("plan-1.json") is None
    cache.store("plan-1.json", b'{"a": 1}')
    assert cache.load("plan-1.json") == b'{"a": 1}'


def test_one_file_put_in_the_place_of_another_is_neither(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.store("plan-1.json", b"one")
    cache.store("screen-2.hs", b"two")
    (tmp_path / "plan-1.json").replace(tmp_path / "screen-2.hs")
    assert cache.load("screen-2.hs") is None
