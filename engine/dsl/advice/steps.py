"""Whatever was captured, some step of a fix applies. Where none does, the first steps are shown, which are for other cases."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.model.expressions import holds


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a fix of which no step applies when nothing was captured."""
    rule = pack.plan.rules().get(draft.id)
    steps = () if rule is None else rule.runbook.fix
    if steps and all(step.when is not None and not holds(step.when, {}) for step in steps):
        message = "when nothing was captured, every `when` is false and none of these steps applies"
        at = draft.document.find(["runbook", "fix"])
        report.add(Code.NO_STEP_FITS, at, message, "leave one of them without `when`, or add one")
