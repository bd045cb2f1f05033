"""`tocsin web`: the users of the pages, and what `tocsin serve` does with them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from engine.cli.entrance import entrance
from engine.cli.main import main
from engine.config import load
from engine.errors import UsageError
from engine.web.access import READ_ONLY, BehindProxy, SignedIn

SOURCES = "sources:\n  - {type: files, paths: [a.log]}\nstore: sqlite:///./state/tocsin.db\n"


def config(tmp_path: Path, auth: str = "{users: tocsin.users}") -> Path:
    path = tmp_path / "tocsin.yml"
    path.write_text(f"{SOURCES}web: {{auth: {auth}}}\n" if auth else SOURCES)
    return path


def test_a_user_is_added_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["-c", str(config(tmp_path))]
    for expected in ("was added to", "has a new password in"):
        monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\nmore\n"))
        assert main(["web", "passwd", "mina", *where, "--stdin"]) == 0
        assert capsys.readouterr().out == f"mina {expected} {tmp_path}/tocsin.users\n"
    assert main(["web", "users", *where]) == 0
    assert capsys.readouterr().out == "mina\n"
    assert main(["web", "users", *where, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == ["mina"]
    with entrance(load(tmp_path / "tocsin.yml").web) as (access, _):
        assert isinstance(access, SignedIn)
    assert main(["web", "remove", "mina", *where]) == 0
    assert main(["web", "remove", "mina", *where]) == 2
    assert "there is no user `mina`" in capsys.readouterr().err
    with (
        pytest.raises(UsageError, match="there is no user; tocsin web passwd NAME adds one"),
        entrance(load(tmp_path / "tocsin.yml").web),
    ):
        pass


def test_what_is_no_password_or_no_place_for_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert main(["web", "passwd", "mina", "-c", str(config(tmp_path)), "--stdin"]) == 2
    problem = capsys.readouterr().err
    assert "10 to 200 characters" in problem and "short" not in problem
    assert main(["web", "passwd", "mina", "-c", str(config(tmp_path, "")), "--stdin"]) == 2
    assert "web.auth.users names no file" in capsys.readouterr().err
    (tmp_path / "tocsin.users").mkdir()
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    assert main(["web", "passwd", "mina", "-c", str(config(tmp_path)), "--stdin"]) == 2
    assert "cannot be read or written" in capsys.readouterr().err


def test_secret_and_audit_are_beside_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = "{proxy: {header: X-User, addresses: [127.0.0.1]}}"
    with entrance(load(config(tmp_path, proxy)).web) as (access, audit):
        audit("signed in", "mina", "127.0.0.1")
        assert isinstance(access, BehindProxy)
    assert {path.name for path in (tmp_path / "state").iterdir()} == {"tocsin.session-secret", "tocsin.audit.jsonl"}
    given = proxy.replace("}}", "}, secret: env:TOCSIN_SECRET, audit: elsewhere/audit.jsonl}")
    monkeypatch.setenv("TOCSIN_SECRET", "short")
    web = load(config(tmp_path, given)).web
    with pytest.raises(UsageError, match="env:TOCSIN_SECRET: the secret of the sessions has fewer than 16"), entrance(web):
        pass
    monkeypatch.setenv("TOCSIN_SECRET", "a secret of the tests")
    with entrance(web):
        pass
    assert (tmp_path / "elsewhere" / "audit.jsonl").exists()


def test_without_auth_nothing_is_made_and_nothing_can_be_changed(tmp_path: Path) -> None:
    with entrance(load(config(tmp_path, "")).web) as (access, _):
        assert access is READ_ONLY
    assert not (tmp_path / "state").exists()
