"""Whatever was captured, some step of a fix fits: where none does, the first ones are told, which are those of other cases."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.model.expressions import evaluate


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a fix of which no step may fit where nothing was captured."""
    rule = pack.plan.rules().get(draft.id)
    steps = () if rule is None else rule.runbook.fix
    if steps and all(step.when is not None and evaluate(step.when, {}) is False for step in steps):
        message = "where nothing of what they ask for was captured, none of these steps fits"
        at = draft.document.find(["runbook", "fix"])
        report.add(Code.NO_STEP_FITS, at, message, "leave one of them without `when`, or add one")
