"""The `web` section: what is wrong in it is said, and where what is made for the pages is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.config import load
from tests.unit.config.test_settings import LEAST, findings


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (LEAST + "web: {listen: '8320'}\n", "`web.listen` is wrong: `8320` is not HOST:PORT"),
        (LEAST + "web: {listen: '::1:8320'}\n", "`::1:8320` is not HOST:PORT"),
        (LEAST + "web: {listen: '127.0.0.1:99999'}\n", "`127.0.0.1:99999` is not HOST:PORT"),
        (LEAST + "web: {public_url: tocsin.example}\n", "`tocsin.example` is not an address of scheme and host"),
        (LEAST + "web: {public_url: 'https://x/tocsin'}\n", "`https://x/tocsin` is not an address of scheme and host"),
        (LEAST + "web: {auth: {user: x}}\n", "unknown key `user`"),
        (LEAST + "web: {auth: {}}\n", "needs either `users` or `proxy`"),
        (LEAST + "web: {auth: {users: u, proxy: {header: X, addresses: [10.0.0.1]}}}\n", "needs either `users` or `proxy`"),
        (LEAST + "web: {auth: {users: u, secret: hunter22hunter22}}\n", "must not hold the secret itself"),
        (LEAST + "web: {auth: {users: u, session: 5s}}\n", "a session lasts a minute at least"),
    ],
)
def test_what_is_wrong_is_said_plainly(tmp_path: Path, text: str, finding: str) -> None:
    (one,) = findings(tmp_path, text)
    assert finding in one


def test_what_is_made_for_the_pages_is_beside_the_store_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tocsin.yml"
    path.write_text(LEAST + "store: sqlite:///state/t.db\nweb: {auth: {users: u, secret: 'file:s'}}\n")
    auth = load(path).web.auth
    assert auth is not None and auth.secret is not None
    assert (auth.users, auth.secret.name, auth.session_s) == (tmp_path / "u", str(tmp_path / "s"), 12 * 3600)
    assert auth.secret_file == tmp_path / "state" / "t.session-secret"
    assert auth.audit_file == tmp_path / "state" / "t.audit.jsonl"
