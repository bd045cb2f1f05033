"""The rules a command runs: the built-in ones or the user's, without the files that are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.dsl import builtin_rules, load_cached
from engine.dsl.report import did_you_mean
from engine.errors import RulesError, UsageError
from engine.model.diagnostics import Diagnostic
from engine.model.records import NOBODY, SPEAKS_FOR, Labels
from engine.model.rules import Plan

BUILTIN = "builtin"


class Rulebook(Struct, frozen=True):
    """What can be run; `wrong` says what is wrong with the files that were left out, and `left_out` names these and the files
    that could not do without them."""

    plan: Plan
    wrong: tuple[Diagnostic, ...] = ()
    left_out: tuple[str, ...] = ()


def rule_paths(folders: Sequence[Path] | None) -> list[Path]:
    """Return the folders that `--rules` options stand for: none means the built-in rules, the word `builtin` too."""
    return [builtin_rules() if str(folder) == BUILTIN else folder for folder in (folders or [Path(BUILTIN)])]


def open_rulebook(folders: Sequence[Path] | None) -> Rulebook:
    """Return the plan of `folders` (see `rule_paths`); a wrong file does not stop the others. Raises RulesError when nothing is
    left of them, and UsageError when there is no rule in them."""
    paths = rule_paths(folders)
    try:
        book = Rulebook(load_cached(paths))
    except RulesError as error:
        book = _without_wrong_files(paths, error)
        if not book.plan.rules():
            raise
    not_empty(book.plan, paths)
    return replace(book, plan=with_layouts(book.plan))


def not_empty(plan: Plan, paths: Sequence[Path]) -> Plan:
    """Return `plan`, which was made of `paths`. Raises UsageError when it has no rule: nothing would be found, whatever is
    wrong."""
    if plan.rules():
        return plan
    where = ", ".join(map(str, paths))
    raise UsageError(f"{where}: there is no rule to look for anything with (rules are *.yml files; disabled ones do not count)")


def with_layouts(plan: Plan) -> Plan:
    """Return `plan` with the built-in formats and components where it brings none: rules alone can read no log."""
    if plan.formats and plan.components:
        return plan
    shipped = load_cached([builtin_rules()])
    return replace(plan, formats=plan.formats or shipped.formats, components=plan.components or shipped.components)


def with_speakers(plan: Plan, sources: Iterable[Labels]) -> Plan:
    """Return `plan`, by which sources with these labels are read. Raises UsageError when `may_speak_for` of one names a
    component that the plan does not have: such a source would speak for nobody."""
    known = {component.name for component in plan.components}
    granted = [labels[SPEAKS_FOR].split(", ") for labels in sources if labels.get(SPEAKS_FOR, NOBODY) != NOBODY]
    unknown = dict.fromkeys(name for each in granted for name in (who.split(" ")[0] for who in each) if name not in known)
    if unknown:
        raise UsageError(
            "; ".join(f"may_speak_for: there is no component `{name}` ({did_you_mean(name, known)})" for name in unknown)
        )
    return plan


def with_roster(plan: Plan, brokers: str) -> Plan:
    """Return `plan` told to expect the brokers of a comma list. Raises UsageError when that is not a list of broker ids."""
    if not brokers:
        return plan
    ids = [each.strip() for each in brokers.split(",")]
    if not all(each.isdecimal() for each in ids):
        raise UsageError(f"--roster takes broker ids such as 1,2,3, not: {brokers}")
    return replace(plan, context={**plan.context, "brokers": ",".join(ids)})


def _without_wrong_files(paths: Sequence[Path], error: RulesError) -> Rulebook:
    """Load again without the files of the findings, until nothing is wrong: what leant on them goes too."""
    first, left_out = error.diagnostics, dict.fromkeys(found.path for found in error.diagnostics)
    while True:
        try:
            plan = load_cached(paths, without=left_out)
        except RulesError as more:
            left_out |= dict.fromkeys(found.path for found in more.diagnostics)
        else:
            return Rulebook(plan, first, tuple(left_out))
