"""The outcome of one check of a configuration, and the exit code of all."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from engine.cli.exits import BAD_REQUEST, FAILURE, FOUND, NOTHING_FOUND
from engine.model.diagnostics import Diagnostic, Level
from engine.model.inspections import Inspection


class CheckOutcome(str, Enum):
    """How a check went. `wrong`: the configuration has to be changed; `failed`: what it names does not work now."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    FAILED = "failed"


class CheckedItem(Struct, frozen=True):
    """One thing that was checked: its area (`source`, `receiver` ...), its name there, and a sentence about it. `details` are
    listed below it."""

    area: str
    name: str
    outcome: CheckOutcome
    sentence: str
    details: tuple[str, ...] = ()


def of_inspection(area: str, name: str, inspection: Inspection) -> CheckedItem:
    """Return the item for what was tried of a system."""
    outcome = {None: CheckOutcome.OK, Level.WARNING: CheckOutcome.WARNING, Level.ERROR: CheckOutcome.FAILED}[inspection.level]
    return CheckedItem(area, name, outcome, inspection.sentence)


def exit_code_of(findings: Iterable[Diagnostic], items: Iterable[CheckedItem]) -> int:
    """Return 2 when something has to be changed, else 3 when something does not work, else 1 for warnings, else 0."""
    levels = {finding.level for finding in findings}
    outcomes = {item.outcome for item in items}
    if Level.ERROR in levels or CheckOutcome.WRONG in outcomes:
        return BAD_REQUEST
    if CheckOutcome.FAILED in outcomes:
        return FAILURE
    return FOUND if Level.WARNING in levels or CheckOutcome.WARNING in outcomes else NOTHING_FOUND
