"""The rule language: YAML files in, a Plan out, and a Diagnostic for every error (docs/rules.md).

Importing this package is cheap; PyYAML, pydantic, pyparsing and RE2 are imported when rules are compiled, not when a cached
plan is read. Imports no other stage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.dsl.cache import cached, cached_tests, store
from engine.dsl.files import RuleSource, collect, fingerprint
from engine.dsl.overrides import Override, apply
from engine.dsl.rule_test import Tests
from engine.errors import RulesError
from engine.model.diagnostics import Diagnostic
from engine.model.rules import Plan

if TYPE_CHECKING:
    from engine.dsl.pack import Pack

__all__ = ["Override", "builtin_rules", "lint", "load", "load_cached", "load_pack", "load_tests", "load_valid"]


def builtin_rules() -> Path:
    """Return the folder of the shipped rules: inside an installed wheel, else the repository's `rules/`."""
    packaged = Path(__file__).parent.parent / "_rulepack"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "rules"


def load(paths: Sequence[Path], overrides: Mapping[str, Override] | None = None) -> Plan:
    """Return the plan of every rule, component and format file at or under `paths`, changed by `overrides` (by rule id).

    Raises RulesError with every error of every file. Warnings are reported by `lint` only.
    """
    return apply(load_valid(paths).plan, overrides or {})


def load_cached(
    paths: Sequence[Path],
    cache_dir: Path | None = None,
    overrides: Mapping[str, Override] | None = None,
    without: Collection[str] = (),
) -> Plan:
    """Return the same plan as `load`, from the cache in `cache_dir` when the same contents were compiled before.

    A cache that is missing, unreadable, damaged or not writable is not an error. `cache_dir` defaults to `tocsin` in the
    user's cache folder. Files besides the shipped ones are compiled alone, and added to the cached plan of these. Raises
    RulesError as `load` does.

    Args:
        without: the paths of files to leave out, as in `Diagnostic.path`.
    """
    sources = [source for source in collect(paths) if str(source.path) not in without]
    plan = cached(fingerprint(sources), cache_dir) or _compile_and_store(sources, cache_dir).plan
    return apply(plan, overrides or {})


def load_tests(paths: Sequence[Path], cache_dir: Path | None = None) -> Tests:
    """Return the tests of the rules at or under `paths`, by rule id, cached like the plan. Raises RulesError as `load` does."""
    sources = collect(paths)
    return cached_tests(fingerprint(sources), cache_dir) or _compile_and_store(sources, cache_dir).tests


def _plan_and_tests(sources: Sequence[RuleSource], cache_dir: Path | None) -> tuple[Plan, Tests]:
    digest = fingerprint(sources)
    plan, tests = cached(digest, cache_dir), cached_tests(digest, cache_dir)
    if plan is not None and tests is not None:
        return plan, tests
    pack = _compile_and_store(sources, cache_dir)
    return pack.plan, pack.tests


def _compile_and_store(sources: Sequence[RuleSource], cache_dir: Path | None) -> Pack:
    from engine.dsl.pack import compile_sources  # noqa: PLC0415  (keeps the cached start free of the compiler)

    pack = _without_errors(_beside_shipped(sources, cache_dir) or compile_sources(sources))
    store(pack.plan, pack.tests, cache_dir)
    return pack


def _beside_shipped(sources: Sequence[RuleSource], cache_dir: Path | None) -> Pack | None:
    """Return the shipped rules, from the cache, with the other `sources` added.

    None when the sources lack a shipped file or have no other, and when an id is defined twice.
    """
    from engine.dsl.pack import compile_beside  # noqa: PLC0415

    shipped = collect([builtin_rules()])
    shipped_sources = frozenset(shipped)
    others = [source for source in sources if source not in shipped_sources]
    if not others or len(others) + len(shipped) != len(sources):
        return None
    return compile_beside(*_plan_and_tests(shipped, cache_dir), shipped, others)


def load_valid(paths: Sequence[Path]) -> Pack:
    """Compile every file at or under `paths`. Raises RulesError with every error of every file."""
    return _without_errors(load_pack(paths))


def _without_errors(pack: Pack) -> Pack:
    if pack.errors():
        raise RulesError(pack.errors())
    return pack


def load_pack(paths: Sequence[Path]) -> Pack:
    """Compile every file at or under `paths`: plan, tests and findings. Never raises for the contents of a file."""
    from engine.dsl.pack import load_pack as compile_pack  # noqa: PLC0415  (keeps the cached start free of the compiler)

    return compile_pack(paths)


def lint(paths: Sequence[Path]) -> list[Diagnostic]:
    """Return every error and warning about the files at or under `paths`, in order of file and place."""
    from engine.dsl.advice import advise  # noqa: PLC0415  (keeps the cached start free of the compiler)

    return advise(load_pack(paths))
