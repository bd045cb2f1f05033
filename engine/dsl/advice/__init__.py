"""What `rules lint` advises beyond errors, for the sake of whoever reads the alert. Each module here is one check.

A check is a function `check(draft, pack, report)` that looks at one rule and reports what it would do otherwise.
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
    """Looks at one rule of a pack; reports findings with a code of 6xx, and never raises."""

    def __call__(self, draft: Draft, pack: Pack, report: Report) -> None:
        """Look at `draft`, a rule of `pack`."""


def advise(pack: Pack) -> list[Diagnostic]:
    """Return every finding of `pack`, warnings included, by file and place."""
    advice = [found for draft in pack.drafts.values() for found in _advise(draft, pack)]
    return in_order([*pack.diagnostics, *advice])


def in_order(findings: list[Diagnostic]) -> list[Diagnostic]:
    """Return `findings` by file and place, each once."""
    return sorted(set(findings), key=lambda found: (found.path, found.line, found.column, found.code, found.message))


@cache
def checks() -> tuple[AdviceCheck, ...]:
    """Return the check of every module of this folder, by the module's name."""
    return tuple(import_module(f"{__name__}.{name}").check for name in sorted(each.name for each in iter_modules(__path__)))


def _advise(draft: Draft, pack: Pack) -> tuple[Diagnostic, ...]:
    report = Report(draft.document)
    for check in checks():
        check(draft, pack, report)
    return report.all()
