"""The advice of `rules lint` beyond errors, for the sake of whoever reads the alert. Each module here is one check.

A check is a function `check(draft, pack, report)` that examines one rule and reports improvements.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.model.diagnostics import Diagnostic


class AdviceCheck(Protocol):
    """A check of one rule of a pack; it reports findings with a code of 6xx and never raises."""

    def __call__(self, draft: Draft, pack: Pack, report: Report) -> None:
        """Check `draft`, a rule of `pack`, and add findings to `report`."""


def advise(pack: Pack) -> list[Diagnostic]:
    """Return every finding of `pack`, the advice of all checks included, by file and place."""
    advice = [finding for draft in pack.drafts.values() for finding in _advise(draft, pack)]
    return in_order([*pack.diagnostics, *advice])


def in_order(findings: list[Diagnostic]) -> list[Diagnostic]:
    """Return `findings` by file and place, each once."""
    return sorted(
        set(findings), key=lambda finding: (finding.path, finding.line, finding.column, finding.code, finding.message)
    )


@cache
def checks() -> tuple[AdviceCheck, ...]:
    """Return the check of every module of this folder, in order of module name."""
    return tuple(import_module(f"{__name__}.{name}").check for name in sorted(module.name for module in iter_modules(__path__)))


def _advise(draft: Draft, pack: Pack) -> tuple[Diagnostic, ...]:
    report = Report(draft.document)
    for check in checks():
        check(draft, pack, report)
    return report.all()
