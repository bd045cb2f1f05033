"""A draft of `rules new` says where its author has to write; what is left of that would be read in an alert."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.document import texts
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report

MARK = "WRITE:"  # begins each text that the author has to replace


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each text of the runbook that still begins with MARK."""
    for text in texts(draft.document.root.get("runbook")):
        if text.value.startswith(MARK):
            report.add(Code.UNFINISHED, text, "this is still the text of the draft", "write what its reader should know")
