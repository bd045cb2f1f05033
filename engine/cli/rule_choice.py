"""Which rules the commands about rules work on: the folders of `--rules`, without a single error, and one rule of them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from engine.cli.rulebook import rule_paths
from engine.dsl import load_pack
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.errors import RulesError, UsageError
from engine.model.rules import Rule

Folders = Annotated[
    list[Path] | None, typer.Option("--rules", metavar="DIR", help="Rules to use instead of the built-in ones.")
]
RuleName = Annotated[str, typer.Argument(metavar="ID", help="A rule.")]


def sound(folders: Sequence[Path] | None) -> Pack:
    """Return the pack of `--rules` folders (see `rule_paths`). Raises RulesError, with every error, when it has any."""
    pack = load_pack(rule_paths(folders))
    if pack.errors():
        raise RulesError(pack.errors())
    return pack


def one(pack: Pack, id: str) -> tuple[Rule, Draft]:
    """Return the rule `id`. Raises UsageError, naming the nearest, when there is none."""
    rules = pack.plan.rules()
    if id not in rules:
        near = get_close_matches(id, rules, n=1)
        raise UsageError(f"there is no rule `{id}`" + (f"; did you mean `{near[0]}`?" if near else "; see tocsin rules list"))
    return rules[id], pack.drafts[id]
