"""Keep compiled plans on disk, and the tests of their rules, so that a small scan does not compile every rule again."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from engine.cache import DiskCache
from engine.codec import dumps, loads
from engine.dsl.rule_test import RuleTest, Tests
from engine.gc_tuning import staying
from engine.model.rules import Plan

T = TypeVar("T")


def cached(digest: str, cache_dir: Path | None = None) -> Plan | None:
    """Return the plan stored under `digest`, None when there is none that can be read."""
    plan = _read(_plan(digest), Plan, cache_dir)
    return plan if plan is not None and plan.hash == digest else None


def cached_tests(digest: str, cache_dir: Path | None = None) -> Tests | None:
    """Return the tests stored under `digest`, None when there are none that can be read."""
    return _read(_tests(digest), dict[str, tuple[RuleTest, ...]], cache_dir)


def store(plan: Plan, tests: Tests, cache_dir: Path | None = None) -> None:
    """Write `plan` and the tests of its rules under its hash, each in one step, and drop all but the newest files; does nothing
    where it may not write."""
    DiskCache(cache_dir).store(_plan(plan.hash), dumps(plan).encode("utf-8"))
    DiskCache(cache_dir).store(_tests(plan.hash), dumps(tests).encode("utf-8"))


def _read(name: str, into: type[T], cache_dir: Path | None) -> T | None:
    stored = DiskCache(cache_dir).load(name)
    if stored is None:
        return None
    try:
        with staying():
            return loads(stored, into)
    except Exception:  # whatever a damaged or foreign file does: the rules themselves are at hand
        return None


def _plan(digest: str) -> str:
    return f"plan-{digest[:32]}.json"


def _tests(digest: str) -> str:
    return f"tests-{digest[:32]}.json"
