"""Check a configuration: the file, its rules, and what it names on this machine and elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.cli.checking.outcomes import CheckedItem, CheckOutcome, exit_code_of
from engine.cli.checking.places import checked_places
from engine.cli.checking.receivers import checked_receivers
from engine.cli.checking.sources import checked_sources
from engine.cli.inputs import checks, surroundings
from engine.cli.output import count
from engine.cli.rulebook import not_empty
from engine.config import Examination, Settings, advise, examine
from engine.dsl import builtin_rules, load_cached
from engine.dsl.overrides import apply
from engine.errors import RulesError, UsageError
from engine.model.diagnostics import Diagnostic, Level
from engine.model.rules import Plan

_MARKS = {
    CheckOutcome.OK: "",
    CheckOutcome.WARNING: "warning: ",
    CheckOutcome.WRONG: "error: ",
    CheckOutcome.FAILED: "failed: ",
}


class ConfigurationCheck(Struct, frozen=True):
    """All that was checked: findings about the configuration and the files of rules, and one item for each other check."""

    path: str
    findings: tuple[Diagnostic, ...]
    items: tuple[CheckedItem, ...]

    @property
    def exit_code(self) -> int:
        """2: something has to be changed; 3: something does not work; 1: warnings; 0: all is well."""
        return exit_code_of(self.findings, self.items)

    def lines(self) -> Iterator[str]:
        """Yield the report: a line for each item, then the findings with their places, then a summary."""
        area = ""
        for item in self.items:
            heading = item.area if item.area != area else ""
            area = item.area
            yield f"{heading:10} {_MARKS[item.outcome]}{item.name}: {item.sentence}"
            yield from (f"{'':12} {detail}" for detail in item.details)
        for finding in self.findings:
            yield f"\n{finding.render()}"
        yield f"\n{self.summary()}"

    def summary(self) -> str:
        """Return one sentence on the result."""
        errors = sum(finding.level is Level.ERROR for finding in self.findings)
        wrong = errors + sum(item.outcome is CheckOutcome.WRONG for item in self.items)
        failed = sum(item.outcome is CheckOutcome.FAILED for item in self.items)
        warnings = len(self.findings) - errors + sum(item.outcome is CheckOutcome.WARNING for item in self.items)
        if not wrong + failed + warnings:
            return f"{self.path}: nothing is wrong"
        parts = (count(wrong, "error"), f"{failed:,} that failed", count(warnings, "warning"))
        return (
            f"{self.path}: {', '.join(part for part, number in zip(parts, (wrong, failed, warnings), strict=True) if number)}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the same for programs."""
        fields = ("code", "path", "line", "column", "message", "help")
        findings = [
            {"severity": finding.level.value, **{name: getattr(finding, name) for name in fields}} for finding in self.findings
        ]
        items = [
            {
                "area": item.area,
                "name": item.name,
                "outcome": item.outcome.value,
                "message": item.sentence,
                "details": list(item.details),
            }
            for item in self.items
        ]
        return {"file": self.path, "exit_code": self.exit_code, "findings": findings, "checks": items}


def check_configuration(path: Path, once: bool = False, offline: bool = False, notify: bool = True) -> ConfigurationCheck:
    """Check the configuration at `path` and everything that it names. Nothing is written or sent.

    Args:
        once: check for a bounded run (see open_input).
        offline: check the file and the rules only.
        notify: check the receivers too.

    Raises UsageError when the file cannot be read.
    """
    examination = examine(path, checks())
    settings = examination.settings
    findings: list[Diagnostic] = []
    items: list[CheckedItem] = []
    if settings is not None:
        plan = _check_rules(settings, findings, items)
        advise(examination, plan)
        items += _routing(examination, settings)
        items += [] if offline else _outside(settings, once, notify)
    return ConfigurationCheck(str(path), (*examination.findings(), *findings), tuple(items))


def _check_rules(settings: Settings, findings: list[Diagnostic], items: list[CheckedItem]) -> Plan | None:
    """Load the rules; return their plan, without overrides, or None when they do not load."""
    paths = [path or builtin_rules() for path in settings.rules]
    name = ", ".join("builtin" if path is None else str(path) for path in settings.rules)
    try:
        plan = not_empty(load_cached(paths), paths)
    except RulesError as error:
        findings += error.diagnostics
        items.append(
            CheckedItem("rules", name, CheckOutcome.WRONG, f"{count(len(error.diagnostics), 'error')}: none is loaded")
        )
        return None
    except UsageError as error:
        items.append(CheckedItem("rules", name, CheckOutcome.WRONG, str(error)))
        return None
    sentence = f"{len(plan.signatures)} signatures, {len(plan.correlations)} correlations"
    items.append(CheckedItem("rules", name, CheckOutcome.OK, sentence))
    rule_ids = {*plan.rules(), *(old for rule in plan.rules().values() for old in rule.replaces)}
    try:
        not_empty(apply(plan, {id_: change for id_, change in settings.overrides.items() if id_ in rule_ids}), paths)
    except UsageError as error:
        items.append(CheckedItem("rules", "overrides", CheckOutcome.WRONG, str(error)))
    return plan


def _routing(examination: Examination, settings: Settings) -> Sequence[CheckedItem]:
    if not examination.document.whole(("receivers",), settings.receivers):
        return ()
    names = ", ".join(receiver.name for receiver in settings.receivers)
    return [CheckedItem("routes", settings.route.receiver, CheckOutcome.OK, f"of the receivers {names}")]


def _outside(settings: Settings, once: bool, notify: bool) -> Iterator[CheckedItem]:
    yield from checked_sources(settings, once, surroundings(settings))
    if notify:
        yield from checked_receivers(settings)
    yield from checked_places(settings)
