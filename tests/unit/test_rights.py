"""What tocsin writes is for its own user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine import rights
from engine.rights import make_file, make_folder, narrow


def modes(root: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (root, *root.rglob("*")) if not path.is_symlink()}


def test_what_was_open_to_others_is_closed_and_counted_once(tmp_path: Path) -> None:
    root = tmp_path / "checkpoint"
    (root / "state").mkdir(parents=True)
    (root / "state" / "1.zip").write_text("")
    (root / "state" / "1.zip").chmod(0o644)
    (root / "state").chmod(0o755)
    root.chmod(0o700)
    narrowed = narrow(root)
    assert (narrowed.count, narrowed.refused) == (2, ())
    assert modes(root) == {"checkpoint": 0o700, "state": 0o700, "1.zip": 0o600}
    assert list(narrow(root).sentences) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("")
    (tmp_path / "other.txt").chmod(0o644)
    (tmp_path / "root").mkdir(mode=0o700)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "other.txt")
    assert narrow(tmp_path / "root").count == 0
    assert stat.S_IMODE((tmp_path / "other.txt").stat().st_mode) == 0o644


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert narrow(tmp_path / "nothing").count == 0


def test_what_cannot_be_closed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "store.db"
    file.write_text("")
    file.chmod(0o644)

    def refused(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(rights.Path, "chmod", refused)
    (sentence,) = narrow(file).sentences
    assert sentence == f"{file} cannot be closed to others: Operation not permitted; other users may read what is in it"


def test_folders_and_files_are_made_for_their_user_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        make_file(tmp_path / "a" / "file")
    finally:
        os.umask(before)
    assert modes(tmp_path / "a") == {"a": 0o700, "b": 0o700, "file": 0o600}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
