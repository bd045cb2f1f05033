"""The advice of `rules lint` beyond errors, for the sake of whoever reads the alert. Each module here is one check.

A check is a function `check(draft, pack, report)` that examines one rule and reports improvements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.terms import prefix_of, used_terms
from engine.model.diagnostics import Diagnostic


class AdviceCheck(Protocol):
    """A check of one rule of a pack; it reports findings with a code of 6xx and never raises."""

    def __call__(self, draft: Draft, pack: Pack, report: Report) -> None:
        """Check `draft`, a rule of `pack`, and add findings to `report`."""


def advise(pack: Pack) -> list[Diagnostic]:
    """Return every finding of `pack`, the advice of all checks included, by file and place."""
    advice = [finding for draft in pack.drafts.values() for finding in _advise(draft, pack)]
    return in_order([*pack.diagnostics, *advice, *_unused_terms(pack)])


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


def _unused_terms(pack: Pack) -> Iterator[Diagnostic]:
    """Yield a finding for each term of the pack's files that no rule of the pack uses."""
    detections = (draft.document.root.get("detection") for draft in pack.drafts.values())
    used = {name for node in detections if node is not None for name in used_terms(node)}
    for document in pack.term_files:
        report, prefix = Report(document), prefix_of(document.path)
        for name, _ in document.root.entries:
            if prefix + name.value not in used:
                message = f"no rule uses `{prefix}{name.value}`"
                report.add(Code.UNUSED_TERM, name, message, "remove it, or name it in a detection with `|term`")
        yield from report.all()
