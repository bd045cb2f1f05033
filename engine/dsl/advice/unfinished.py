"""A rule keeps no text of the draft that `rules new` wrote; the reader of an alert would see it."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.document import texts
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report

MARK = "WRITE:"  # prefix of each text that the author has to replace


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each text of the runbook that still begins with MARK."""
    for text in texts(draft.document.root.get("runbook")):
        if text.value.startswith(MARK):
            report.add(
                Code.UNFINISHED, text, "this is still the text of the draft", "write what the reader of the alert needs to know"
            )
