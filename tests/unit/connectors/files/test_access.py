"""A denied file says what stands in the way and who may read it."""

from __future__ import annotations

import grp
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.files import access
from connectors.files.access import ClosedPath, closed_path, missing_right
from connectors.files.opening import opened
from engine.errors import SourceDenied

NOBODY = 65534


def denying(*paths: Path) -> Callable[[str, int], bool]:
    return lambda path, _: path not in set(map(str, paths))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "docker" / "containers" / "a.log"
    path.parent.mkdir(parents=True)
    path.write_text("one\n")
    return path


def test_the_first_folder_on_the_way_that_is_closed_is_named(log: Path) -> None:
    closed = closed_path(str(log), denying(log, log.parent, log.parent.parent))
    assert closed is not None
    assert closed.path == str(log.parent.parent)
    sentence = missing_right(str(log), denying(log.parent.parent, log))
    assert f"{log.parent.parent} is closed, and only" in sentence
    assert f"or grant entry (setfacl -m u:USER:x {log.parent.parent})" in sentence, "and nothing else below it"


def test_a_group_that_may_is_the_one_to_be_in(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.chmod(0o640)
    monkeypatch.setattr(access, "_group", lambda gid: "adm")
    assert missing_right(str(log), denying(log)) == ("group adm may: add the user to it (usermod -aG adm USER) and start again")


def test_what_is_for_its_owner_alone_takes_that_user_a_capability_or_a_grant(log: Path) -> None:
    log.chmod(0o600)
    sentence = missing_right(str(log), denying(log))
    assert "CAP_DAC_READ_SEARCH" in sentence
    assert f"setfacl -R -m u:USER:rX {log.parent}" in sentence


@pytest.mark.parametrize(
    ("mode", "group", "may"),
    [
        (0o100640, "adm", True),
        (0o100600, "adm", False),
        (0o100640, "root", False),
        (0o40750, "adm", True),
        (0o40740, "adm", False),
    ],
)
def test_a_group_may_when_its_bits_say_so_and_it_is_not_that_of_root(mode: int, group: str, may: bool) -> None:
    assert ClosedPath("/x", mode, "root", group).group_may is may


def test_what_a_link_leads_to_is_looked_at_too(log: Path) -> None:
    link = log.parent.parent.parent / "link.log"
    link.symlink_to(log)
    closed = closed_path(str(link), denying(log.parent))
    assert closed is not None
    assert closed.path == str(log.parent)


def test_without_a_reason_that_can_be_seen_it_says_what_anybody_would_try(log: Path) -> None:
    assert missing_right(str(log), lambda *_: True) == "run as a user that may, or change its mode"


@contextmanager
def somebody_else() -> Iterator[None]:
    """Let this process be a user without rights for a while."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else for a while")
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (0o640, "no permission to read it; group {group} may: add the user to it"),
        (0o600, "no permission to read it; only root may"),
    ],
)
def test_another_user_is_told_which_right_is_missing(mode: int, sentence: str) -> None:
    group = next(entry for entry in grp.getgrall() if entry.gr_name in ("adm", "systemd-journal", "mail"))
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        Path(folder).chmod(0o755)
        log = Path(folder) / "a.log"
        log.write_text("one\n")
        log.chmod(mode)
        os.chown(log, 0, group.gr_gid)
        with somebody_else(), pytest.raises(SourceDenied) as denied, opened(str(log), regular=True):
            pass
    assert sentence.format(group=group.gr_name) in str(denied.value)
