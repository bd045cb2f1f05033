"""Sessions and tokens: made by us, for one user, for a time."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.web.sessions import Sessions, checked_secret, stored_secret

SECRET = "a secret of the tests"


def sessions(lifetime_s: float = 60, fingerprint: str = "f") -> Sessions:
    return Sessions(SECRET, lifetime_s, lambda user: fingerprint if user == "mina" else "")


def test_a_session_lasts_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = sessions()
    cookie = made.begin("mina")
    session = made.read(cookie)
    assert session is not None and session.user == "mina"
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 62)
    assert made.read(cookie) is None


def test_a_session_is_of_one_secret_one_password_and_a_user_that_there_is() -> None:
    cookie = sessions().begin("mina")
    assert Sessions("another secret of tests", 60, lambda _: "f").read(cookie) is None
    assert sessions(fingerprint="another").read(cookie) is None
    assert sessions().read(sessions().begin("nobody")) is None


def test_a_token_is_no_cookie_and_a_cookie_is_no_token() -> None:
    made = sessions()
    cookie = made.begin("mina")
    session = made.read(cookie)
    assert session is not None
    token = made.token(session.id)
    assert made.is_token(token, session.id)
    assert made.read(token) is None
    assert not made.is_token(cookie, session.id)
    assert not made.is_token(token, "another session")
    assert not made.is_token(made.token(""), "")


def test_the_secret_is_made_once_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tocsin.session-secret"
    secret = stored_secret(path)
    assert len(secret) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stored_secret(path) == secret
    path.chmod(0o640)
    with pytest.raises(UsageError, match="can read it, and so sign in as anybody"):
        stored_secret(path)


def test_a_secret_that_is_none_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        checked_secret("hunter2", "env:SECRET")
    assert str(refused.value) == "env:SECRET: the secret of the sessions has fewer than 16 characters"
    (tmp_path / "folder").write_text("")
    with pytest.raises(UsageError, match="cannot be made or read"):
        stored_secret(tmp_path / "folder" / "secret")
