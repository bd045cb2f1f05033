"""An empty store in each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.store import Store


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = Store.open(address)
    yield opened
    opened.close()
