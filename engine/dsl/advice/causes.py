"""A cause that lists several causes leaves the reader to find out which it was; `cases` read it from the log."""

from __future__ import annotations

import re

from engine.dsl.codes import Code
from engine.dsl.document import TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report

# behind a colon, within one sentence and outside parentheses: parts with a comma between them, one of them after `or`
_LIST = re.compile(r": (?P<list>(?:[^.:,()]|\.(?=\S))+,(?:[^.:()]|\.(?=\S))*?,? or (?:[^.:()]|\.(?=\S))+)")
_ASIDE = re.compile(r"\{[^{}]*\}|\([^()]*\)")  # holes and parentheses


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a cause that lists alternatives, in a runbook without `cases`."""
    runbook, at = draft.file.runbook, draft.document.find(["runbook", "cause"])
    if runbook is None or runbook.cases or not isinstance(at, TextNode):
        return
    alternatives = lists_causes(runbook.cause)
    if alternatives:
        message = f"the cause lists several causes, and no `cases` tell them apart: {alternatives}"
        help_line = "write a case for each text in the log that decides, and leave here what holds without one"
        report.add(Code.NO_CASES, at, message, help_line)


def lists_causes(cause: str) -> str:
    """Return the list of alternatives in a cause: behind a colon, with commas and `or`; empty when there is none."""
    match = _LIST.search(_ASIDE.sub("", " ".join(cause.split())))
    return match["list"].strip() if match else ""
