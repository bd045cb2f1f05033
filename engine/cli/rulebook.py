"""Load the rules that a command runs: the built-in ones or the user's, without the files that have errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.dsl import builtin_rules, load_cached
from engine.dsl.report import did_you_mean
from engine.errors import RulesError, UsageError
from engine.model.diagnostics import Diagnostic
from engine.model.records import NOBODY, SPEAKS_FOR, Labels
from engine.model.rules import Plan

if TYPE_CHECKING:
    from engine.config import Settings

BUILTIN = "builtin"


class Rulebook(Struct, frozen=True):
    """The rules that can be run.

    Attributes:
        diagnostics: the errors of the files that were left out.
        left_out: the paths of these files and of the files that depend on them.
    """

    plan: Plan
    diagnostics: tuple[Diagnostic, ...] = ()
    left_out: tuple[str, ...] = ()


def rule_paths(folders: Sequence[Path] | None) -> list[Path]:
    """Return the folders of `--rules` options, where `builtin` is that of the shipped rules; the shipped rules when there are
    none."""
    return [builtin_rules() if str(folder) == BUILTIN else folder for folder in (folders or [Path(BUILTIN)])]


def open_rulebook(folders: Sequence[Path] | None) -> Rulebook:
    """Return the rules of `folders` (see `rule_paths`), without the files that have errors and those that depend on them.

    Raises RulesError when no rule is left, and UsageError when the folders have no rule.
    """
    paths = rule_paths(folders)
    try:
        book = Rulebook(load_cached(paths))
    except RulesError as error:
        book = _without_wrong_files(paths, error)
        if not book.plan.rules():
            raise
    not_empty(book.plan, paths)
    return replace(book, plan=with_layouts(book.plan))


def configured_rule_paths(settings: Settings) -> list[Path]:
    """Return the folders of the rules of a configuration."""
    return [path or builtin_rules() for path in settings.rules]


def configured_plan(settings: Settings) -> Plan:
    """Return the plan of a configuration.

    Raises RulesError, and UsageError when there is no rule or when `may_speak_for` of a source names an unknown component.
    """
    paths = configured_rule_paths(settings)
    plan = with_layouts(not_empty(load_cached(paths, overrides=settings.overrides), paths))
    with_speakers(plan, (source.labels for source in settings.sources))
    context, languages = {**plan.context, **settings.context}, settings.plan_languages
    hash_ = "+".join((plan.hash, *languages))  # incidents are composed anew when a language is added
    return replace(plan, context=context, redaction=settings.redaction, languages=languages, hash=hash_)


def not_empty(plan: Plan, paths: Sequence[Path]) -> Plan:
    """Return `plan`, which was loaded from `paths`. Raises UsageError when it has no rule: it would find nothing in any log."""
    if plan.rules():
        return plan
    where = ", ".join(map(str, paths))
    raise UsageError(f"{where}: there is no rule to look for anything with (rules are *.yml files; disabled ones do not count)")


def with_layouts(plan: Plan) -> Plan:
    """Return `plan` with the built-in formats and components where it has none: no log can be decoded without them."""
    if plan.formats and plan.components:
        return plan
    shipped = load_cached([builtin_rules()])
    return replace(plan, formats=plan.formats or shipped.formats, components=plan.components or shipped.components)


def with_speakers(plan: Plan, sources: Iterable[Labels]) -> Plan:
    """Return `plan` after checking the labels of `sources` against it.

    Raises UsageError when `may_speak_for` of a source names a component that the plan does not have.
    """
    names = {component.name for component in plan.components}
    granted = [labels[SPEAKS_FOR].split(", ") for labels in sources if labels.get(SPEAKS_FOR, NOBODY) != NOBODY]
    unknown = dict.fromkeys(
        name for grants in granted for name in (grant.split(" ")[0] for grant in grants) if name not in names
    )
    if unknown:
        raise UsageError(
            "; ".join(f"may_speak_for: there is no component `{name}` ({did_you_mean(name, names)})" for name in unknown)
        )
    return plan


def with_roster(plan: Plan, brokers: str) -> Plan:
    """Return `plan` with the broker ids of a comma-separated list as the expected brokers; unchanged for an empty list.

    Raises UsageError when the list has something else than broker ids.
    """
    if not brokers:
        return plan
    ids = [id_.strip() for id_ in brokers.split(",")]
    if not all(id_.isdecimal() for id_ in ids):
        raise UsageError(f"--roster takes broker ids such as 1,2,3, not: {brokers}")
    return replace(plan, context={**plan.context, "brokers": ",".join(ids)})


def _without_wrong_files(paths: Sequence[Path], error: RulesError) -> Rulebook:
    """Load again without the files that have errors, until none has: files that depend on them are left out too."""
    diagnostics, left_out = error.diagnostics, dict.fromkeys(diagnostic.path for diagnostic in error.diagnostics)
    while True:
        try:
            plan = load_cached(paths, without=left_out)
        except RulesError as later:
            left_out |= dict.fromkeys(diagnostic.path for diagnostic in later.diagnostics)
        else:
            return Rulebook(plan, diagnostics, tuple(left_out))
