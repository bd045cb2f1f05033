"""Cache compiled plans and the tests of their rules on disk, so that a small scan does not compile every rule again."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from engine.cache import DiskCache
from engine.codec import dumps, loads
from engine.dsl.rule_test import RuleTest, Tests
from engine.gc_tuning import without_gc
from engine.model.rules import Plan

T = TypeVar("T")


def cached(digest: str, cache_dir: Path | None = None) -> Plan | None:
    """Return the plan stored under `digest`; None when there is no readable one."""
    plan = _read(_plan_name(digest), Plan, cache_dir)
    return plan if plan is not None and plan.hash == digest else None


def cached_tests(digest: str, cache_dir: Path | None = None) -> Tests | None:
    """Return the tests stored under `digest`, by rule id; None when there are no readable ones."""
    return _read(_tests_name(digest), dict[str, tuple[RuleTest, ...]], cache_dir)


def store(plan: Plan, tests: Tests, cache_dir: Path | None = None) -> None:
    """Write `plan` and the tests of its rules under the plan's hash, each file atomically; delete all but the newest files.

    Does nothing where the folder is not writable.
    """
    DiskCache(cache_dir).store(_plan_name(plan.hash), dumps(plan).encode("utf-8"))
    DiskCache(cache_dir).store(_tests_name(plan.hash), dumps(tests).encode("utf-8"))


def _read(name: str, type_: type[T], cache_dir: Path | None) -> T | None:
    content = DiskCache(cache_dir).load(name)
    if content is None:
        return None
    try:
        with without_gc():
            return loads(content, type_)
    except Exception:  # a damaged or foreign file may raise anything; the rules are compiled again
        return None


def _plan_name(digest: str) -> str:
    return f"plan-{digest[:32]}.json"


def _tests_name(digest: str) -> str:
    return f"tests-{digest[:32]}.json"
