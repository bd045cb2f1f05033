"""What every test may use: golden files, one Spark session a run, and a cache of compiled rules that is not the user's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from engine.errors import RuntimeMissing
from engine.spark.session import check_runtime, start, stop
from engine.spark.spark_settings import Resources
from engine.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.postgresql import PostgresServer

EXAMPLES = os.environ.get("TOCSIN_EXAMPLES", "all")  # quick, all, or fixed: all, and the same in every run
settings.register_profile(
    "tocsin",
    deadline=None,  # speed is for make bench: a busy machine fails no test
    print_blob=True,
    max_examples=25 if EXAMPLES == "quick" else 100,
    derandomize=EXAMPLES == "fixed",
)
settings.load_profile("tocsin")

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.server)]  # that a store can be in
GOLDEN = Path(__file__).parent / "golden"


def pytest_configure(config: pytest.Config) -> None:
    os.environ["XDG_CACHE_HOME"] = str(config.rootpath / ".pytest_cache" / "xdg")  # compiled rules: not the user's


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare text with a file of tests/golden; `make accept` (TOCSIN_ACCEPT=1) writes the file instead."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("TOCSIN_ACCEPT") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8"), f"tests/golden/{name} differs; see make accept"

    return compare


@pytest.fixture(scope="session")
def runtime() -> None:
    """Skip what needs Spark where its Java or packages are absent; with TOCSIN_REQUIRE_SERVERS=1 fail instead."""
    try:
        check_runtime()
    except RuntimeMissing as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def spark(runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests of a run: a second one in a process would start a second JVM and not use it."""
    session = start(Resources(cores=2, partitions=2, log=tmp_path_factory.mktemp("spark") / "spark.log"))
    yield session
    stop(session)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """One server for all tests of a run; each store is a schema of its own."""
    from tests.servers.postgresql import NoPostgres, postgres_server

    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(f"PostgreSQL cannot be had: {missing}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store in a file."""
    opened = Store.open(f"sqlite:///{tmp_path}/tocsin.db")
    yield opened
    opened.close()


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet, in each database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state/tocsin.db"
    server: PostgresServer = request.getfixturevalue("postgresql")
    return server.empty_store()
