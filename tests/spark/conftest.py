"""One Spark session for all tests of this folder; without Java they are skipped, unless TOCSIN_REQUIRE_SERVERS=1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import RuntimeMissing
from engine.spark.session import Resources, check_runtime, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def runtime() -> None:
    try:
        check_runtime()
    except RuntimeMissing as missing:
        if os.environ.get("TOCSIN_REQUIRE_SERVERS") == "1":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def spark(runtime: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = start(Resources(cores=2, partitions=2, log=tmp_path_factory.mktemp("spark") / "spark.log"))
    yield session
    session.stop()
