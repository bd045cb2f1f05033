"""One broker for all tests of this folder; without its jars they are skipped, unless TOCSIN_REQUIRE_SERVERS=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.broker import Broker, brokers
from tests.servers.jars import NoJars, kafka_jars
from tests.servers.topics import Topics

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def jars() -> Path:
    try:
        return kafka_jars()
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"the jars of a Kafka broker cannot be had: {missing}")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Broker]:
    with brokers(jars, tmp_path_factory.mktemp("brokers")) as (running,):
        yield running


@pytest.fixture
def topics(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Topics]:
    made = Topics(broker.address)
    yield made
    made.close()
