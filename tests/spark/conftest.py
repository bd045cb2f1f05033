"""Tests of this folder run Spark; without Java they are skipped, unless TOCSIN_REQUIRE_SERVERS=1."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def java(runtime: None) -> None:
    """Every test of this folder needs Spark's runtime."""
