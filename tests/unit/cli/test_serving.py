"""The pages beside a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.serving import serving_pages
from engine.config import load
from engine.store import Store

USERS = "web: {{listen: '127.0.0.1:0', auth: {{users: {users}, secret: 'file:{secret}'}}}}\n"


@pytest.mark.parametrize("fault", ["users", "secret"])
def test_a_run_goes_on_without_pages_when_nobody_could_sign_in(tmp_path: Path, fault: str) -> None:
    users, secret = tmp_path / "users", tmp_path / "secret"
    if fault == "secret":
        users.write_text("ann:$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b4dWRWJTmaaJObG\n")
        secret.write_text("short")
        for file in (users, secret):
            file.chmod(0o600)
    config = tmp_path / "tocsin.yml"
    config.write_text("sources:\n  - {type: files, paths: [logs]}\n" + USERS.format(users=users, secret=secret))
    settings = load(config)
    store, sentences, warnings = Store.open(f"sqlite:///{tmp_path}/tocsin.db"), list[str](), list[str]()
    with serving_pages(settings, store, sentences.append, warnings.append):
        pass
    store.close()
    (warning,) = warnings
    assert warning.startswith("no pages are served by this process: ")
    assert str(users if fault == "users" else secret) in warning
    assert sentences == []
