"""The option `--rules` and the argument ID of the commands about rules, and the plan, tests and rule that they select."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.rulebook import rule_paths
from engine.dsl import load_cached, load_tests
from engine.dsl.rule_test import Tests
from engine.errors import UsageError
from engine.model.rules import Plan, Rule

Folders = Annotated[
    list[Path] | None, typer.Option("--rules", metavar="DIR", help="Rules to use instead of the built-in ones.")
]
RuleName = Annotated[str, typer.Argument(metavar="ID", help="A rule.")]


def plan_of(folders: Sequence[Path] | None) -> Plan:
    """Return the plan of `--rules` folders (see `rule_paths`). Raises RulesError, with all errors, when they have any."""
    return load_cached(rule_paths(folders))


def tests_of(folders: Sequence[Path] | None) -> Tests:
    """Return the tests of the rules of `--rules` folders. Raises RulesError as `plan_of` does."""
    return load_tests(rule_paths(folders))


def rule_of(plan: Plan, id: str) -> Rule:
    """Return the rule `id`. Raises UsageError, which names the nearest rule, when there is no such rule."""
    rules = plan.rules()
    if id not in rules:
        matches = get_close_matches(id, rules, n=1)
        raise UsageError(
            f"there is no rule `{id}`" + (f"; did you mean `{matches[0]}`?" if matches else "; see tocsin rules list")
        )
    return rules[id]
