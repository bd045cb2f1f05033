"""Tests of this folder run Spark; without Java they are skipped, unless TOCSIN_REQUIRE_SERVERS=1."""

from __future__ import annotations

import pytest

FOLDER = "tests/spark/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDER):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def java(runtime: None) -> None:
    """Every test of this folder needs Spark's runtime."""
