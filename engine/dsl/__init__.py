"""The rule language: YAML files in, a Plan out, and a Diagnostic for everything that is wrong (DESIGN 5, docs/rules.md).

Importing this package is cheap; PyYAML, pydantic, lark and RE2 are imported when rules are compiled, not when a cached
plan is read. Imports no other stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.dsl.cache import cached, cached_tests, store
from engine.dsl.files import collect, fingerprint
from engine.dsl.overrides import Override, apply
from engine.dsl.rule_test import Tests
from engine.errors import RulesError
from engine.model.diagnostics import Diagnostic
from engine.model.rules import Plan

if TYPE_CHECKING:
    from engine.dsl.pack import Pack

__all__ = ["Override", "builtin_rules", "lint", "load", "load_cached", "load_pack", "load_tests", "sound"]


def builtin_rules() -> Path:
    """Return the folder of the shipped rules: inside an installed wheel, else the repository's `rules/`."""
    packaged = Path(__file__).parent.parent / "_rulepack"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "rules"


def load(paths: Sequence[Path], overrides: Mapping[str, Override] | None = None) -> Plan:
    """Return the plan of every rule, component and format file at or under `paths`, changed as `overrides` (by rule id) say.

    Raises RulesError with every error of every file. Warnings are for `lint`.
    """
    return apply(sound(paths).plan, overrides or {})


def load_cached(paths: Sequence[Path], cache_dir: Path | None = None, overrides: Mapping[str, Override] | None = None) -> Plan:
    """Return what `load` returns, from a file of `cache_dir` when the same contents were compiled before.

    A cache that is missing, unreadable, damaged or cannot be written is no error. `cache_dir` defaults to `tocsin` in the
    user's cache folder. Raises RulesError as `load` does.
    """
    digest = fingerprint(collect(paths))
    plan = cached(digest, cache_dir) or _stored(paths, cache_dir).plan
    return apply(plan, overrides or {})


def load_tests(paths: Sequence[Path], cache_dir: Path | None = None) -> Tests:
    """Return the tests of the rules at or under `paths`, kept as `load_cached` keeps the plan. Raises RulesError as `load`."""
    return cached_tests(fingerprint(collect(paths)), cache_dir) or _stored(paths, cache_dir).tests


def _stored(paths: Sequence[Path], cache_dir: Path | None) -> Pack:
    pack = sound(paths)
    store(pack.plan, pack.tests, cache_dir)
    return pack


def sound(paths: Sequence[Path]) -> Pack:
    """Return everything at or under `paths`. Raises RulesError with every error of every file."""
    pack = load_pack(paths)
    if pack.errors():
        raise RulesError(pack.errors())
    return pack


def load_pack(paths: Sequence[Path]) -> Pack:
    """Return plan, tests and findings of everything at or under `paths`; never raises for what a file holds."""
    from engine.dsl.pack import load_pack as compile_pack  # noqa: PLC0415  (keeps the cached start free of the compiler)

    return compile_pack(paths)


def lint(paths: Sequence[Path]) -> list[Diagnostic]:
    """Return every error and warning about the files at or under `paths`, by file and place."""
    from engine.dsl.advice import advise  # noqa: PLC0415  (keeps the cached start free of the compiler)

    return advise(load_pack(paths))
