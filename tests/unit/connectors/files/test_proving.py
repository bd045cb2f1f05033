"""A line is put where a source of files reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from connectors.files import find
from connectors.files.proving import put_line
from engine.errors import SourceDenied, SourceMissing


@pytest.mark.parametrize("path", ["{folder}", "{folder}/*.log", "{folder}/*", "{folder}/**/*.log", "{folder}/a-*.log"])
def test_it_goes_into_a_file_of_its_own_that_the_source_reads(tmp_path: Path, path: str) -> None:
    (tmp_path / "a-1.log").write_text("a\n")
    (tmp_path / "below").mkdir()
    place = path.format(folder=tmp_path)
    own = put_line([place], "one")
    assert put_line([place], "two") == own
    assert own.read_text() == "one\ntwo\n"
    assert str(own) in find([place]).files
    assert (tmp_path / "a-1.log").read_text() == "a\n"


def test_it_goes_to_the_end_of_a_log_that_is_named_itself_on_a_line_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("a\nb")
    assert put_line([str(log)], "one") == log
    put_line([str(log)], "two")
    assert log.read_text() == "a\nb\none\ntwo\n"


def test_where_nothing_is_to_be_read_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no file yet"):
        put_line([str(tmp_path / "later" / "server.log")], "one")
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SourceDenied, match="run it as a user who may write there"):
        put_line([str(tmp_path)], "one")


def test_a_log_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "server.log"
    log.write_text("a\n")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SourceDenied, match=r"server.log: Permission denied.*name another --source"):
        put_line([str(log)], "one")


def test_whoever_puts_it_the_run_can_read_it(tmp_path: Path) -> None:
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(tmp_path, 65534, 65533)
    earlier = os.umask(0o077)
    try:
        own = put_line([str(tmp_path)], "one")
    finally:
        os.umask(earlier)
    status, folder = own.stat(), tmp_path.stat()
    assert status.st_mode & 0o777 == 0o644
    assert (status.st_uid, status.st_gid) == (folder.st_uid, folder.st_gid if is_root else status.st_gid)


def test_the_rights_of_a_log_stay_as_they_are(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("a\n")
    log.chmod(0o600)
    put_line([str(log)], "one")
    assert log.stat().st_mode & 0o777 == 0o600
