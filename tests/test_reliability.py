"""Every row of docs/reliability.md names a test that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> Iterator[tuple[str, str]]:
    """Yield the failure and the tests of every row."""
    for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| failure "):
            failure, _, tests = (cell.strip() for cell in line.strip("| ").split(" | "))
            yield failure, tests


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of the functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("failure", "tests"), list(rows()))
def test_a_failure_has_a_test(failure: str, tests: str) -> None:
    named = NAMED.findall(tests)
    assert named, failure
    assert [f"{path}::{name}" for path, name in named if name not in functions(path)] == []


def test_no_failure_is_listed_twice() -> None:
    failures = [failure for failure, _ in rows()]
    assert sorted(set(failures)) == sorted(failures)
