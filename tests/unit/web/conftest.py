"""A real store, filled with incidents, behind the pages."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from starlette.testclient import TestClient

from engine.model.incidents import Incident
from engine.model.links import NO_LINKS
from engine.store import Store
from engine.store.store import BatchId
from engine.web.access import SignedIn
from engine.web.app import application
from engine.web.passwords import Users
from engine.web.sessions import Sessions
from tests.unit.cli.incidents import AT

HOST = "127.0.0.1:8320"
ORIGIN = f"http://{HOST}"
PASSWORD = "correct horse battery"
NOW = AT + timedelta(hours=2, minutes=4)

Fill = Callable[..., None]


@pytest.fixture
def fill(store: Store) -> Fill:
    """Put revisions of incidents into the store, each call as one batch."""

    def put(*incidents: Incident) -> None:
        with store.batch(BatchId("query", store.batches())) as ledger:
            ledger.put_incidents(incidents)

    return put


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """Return a file with the users mina and jun, whose passwords are PASSWORD."""
    path = tmp_path / "tocsin.users"
    hashed = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    path.write_text(f"mina:{hashed}\njun:{hashed}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def audit() -> list[dict[str, str]]:
    return []


@pytest.fixture
def signed(store: Store, users: Path, audit: list[dict[str, str]]) -> Callable[[], TestClient]:
    """Return what opens another browser on pages to which users sign in."""
    known = Users(users)
    access = SignedIn(known, Sessions("a secret of the tests", 3600, known.fingerprint), is_encrypted=False)

    def record(event: str, user: str, address: str, **details: str) -> None:
        audit.append({"event": event, "user": user, "address": address, **details})

    app = application(store, frozenset({HOST}), lambda: NOW, NO_LINKS, access, record, frozenset({ORIGIN}))
    return lambda: TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


@pytest.fixture
def client(store: Store) -> TestClient:
    return TestClient(application(store, frozenset({HOST}), lambda: NOW), base_url=f"http://{HOST}")
