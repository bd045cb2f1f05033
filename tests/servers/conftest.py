"""One broker, and one Elasticsearch node, for all tests of this folder; without their jars they are skipped, unless
TOCSIN_REQUIRE_SERVERS=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.net.inet import KafkaNetSocket

from tests.servers.broker import Broker, brokers
from tests.servers.cluster_runs import Shared, shared_place
from tests.servers.elasticsearch import ElasticsearchNode, elasticsearch_node
from tests.servers.jars import NoJars, kafka_jars
from tests.servers.search_home import OLD, SearchVersion, search_home
from tests.servers.spark_cluster import SparkCluster, spark_cluster
from tests.servers.topics import Topics

FOLDER = "tests/servers/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDER):
            item.add_marker(pytest.mark.server)


@pytest.fixture(scope="session")
def jars() -> Path:
    try:
        return kafka_jars()
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"the jars of a Kafka broker cannot be had: {missing}")


@pytest.fixture(scope="session", autouse=True)
def refused_sockets() -> Iterator[None]:
    """Close sockets that were refused: kafka-python leaves that to the garbage collector, and warnings are errors here."""
    connect = KafkaNetSocket.sock_connect

    async def connect_or_close(self: KafkaNetSocket, net: Any, sock: Any, address: Any, timeout_at: Any = None) -> Any:
        try:
            return await connect(self, net, sock, address, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KafkaNetSocket, "sock_connect", connect_or_close)
        yield


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[Broker]:
    with brokers(jars, tmp_path_factory.mktemp("brokers")) as (running,):
        yield running


@pytest.fixture
def topics(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Topics]:
    made = Topics(broker.address)
    yield made
    made.close()


@pytest.fixture(scope="session")
def elasticsearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchNode]:
    """The newest Elasticsearch that this machine's Java runs. Tests share it, so they name what they make after themselves."""
    yield from _node(None, tmp_path_factory)


@pytest.fixture(scope="session")
def old_elasticsearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ElasticsearchNode]:
    """An Elasticsearch of the major version before."""
    yield from _node(OLD, tmp_path_factory)


def _node(version: SearchVersion | None, folders: pytest.TempPathFactory) -> Iterator[ElasticsearchNode]:
    try:
        home = search_home(version)
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"Elasticsearch cannot be had: {missing}")
    with elasticsearch_node(home, folders.mktemp("elasticsearch")) as node:
        yield node


@pytest.fixture(scope="module")
def cluster(runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark-cluster")) as running:
        yield running


@pytest.fixture(params=["folder", "hdfs", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shared]:
    """Where a checkpoint may be that all machines share."""
    try:
        with shared_place(request.param, tmp_path) as place:
            yield place
    except NoJars as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"{request.param} cannot be had: {missing}")
