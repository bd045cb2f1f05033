"""The file of users: what is in it, who may write to it, and how long a name takes that is not in it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.web.passwords import Users, put_user, read_users, remove_user


def test_a_password_is_stored_as_a_hash_for_this_user_alone_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tocsin.users"
    assert put_user(path, "mina", "correct horse battery")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "correct horse" not in path.read_text()
    assert read_users(path)["mina"].startswith("$argon2id$")
    users = Users(path)
    assert users.verify("mina", "correct horse battery")
    assert not users.verify("mina", "correct horse batterx")
    assert not users.verify("jun", "correct horse battery")


def test_a_change_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.users"
    put_user(path, "mina", "correct horse battery")
    users = Users(path)
    before = users.fingerprint("mina")
    assert not put_user(path, "mina", "another long password")
    assert users.fingerprint("mina") not in ("", before)
    assert remove_user(path, "mina")
    assert (users.fingerprint("mina"), remove_user(path, "mina")) == ("", False)
    path.unlink()
    with pytest.raises(UsageError, match="the users cannot be read"):
        users.verify("mina", "x")


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a\n", "x" * 65, "../x/y"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a name"):
        put_user(tmp_path / "users", name, "correct horse battery")


@pytest.mark.parametrize("password", ["", "short", "x" * 201])
def test_a_password_that_is_too_short_or_too_long_is_refused(tmp_path: Path, password: str) -> None:
    with pytest.raises(UsageError, match=f"10 to 200 characters, this one has {len(password)}"):
        put_user(tmp_path / "users", "mina", password)


def test_a_file_that_others_can_write_to_is_not_trusted(users: Path) -> None:
    users.chmod(0o622)
    with pytest.raises(UsageError, match="can write to it, and so add users; chmod 600"):
        Users(users).hashes()


@pytest.mark.parametrize("line", ["mina", "mina:", "mina:plain text password", "mi na:$argon2id$x"])
def test_a_line_that_is_no_user_is_named_by_its_number_and_not_shown(users: Path, line: str) -> None:
    users.write_text(f"# users\n\n{line}\n")
    with pytest.raises(UsageError, match=r"tocsin.users:3: not a user") as refused:
        Users(users).hashes()
    assert "plain" not in str(refused.value)


def test_a_hash_that_is_damaged_is_nobodys_password(users: Path) -> None:
    users.write_text("mina:$argon2id$v=19$damaged\n")
    assert not Users(users).verify("mina", "correct horse battery")
