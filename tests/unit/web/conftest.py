"""A real store, filled with incidents, behind the pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from engine.model.incidents import Incident
from engine.store import Store
from engine.store.store import BatchId
from engine.web.app import application
from tests.unit.cli.incidents import AT

HOST = "127.0.0.1:8320"
NOW = AT + timedelta(hours=2, minutes=4)

Fill = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    yield opened
    opened.close()


@pytest.fixture
def fill(store: Store) -> Fill:
    """Put revisions of incidents into the store, each call as one batch."""

    def put(*incidents: Incident) -> None:
        with store.batch(BatchId("query", store.batches())) as ledger:
            ledger.put_incidents(incidents)

    return put


@pytest.fixture
def client(store: Store) -> TestClient:
    return TestClient(application(store, frozenset({HOST}), lambda: NOW), base_url=f"http://{HOST}")
