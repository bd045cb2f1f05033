"""A deprecated rule goes one day: it says what stands in for it, and nothing else needs it."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.links import needed
from engine.dsl.pack import Pack
from engine.dsl.report import Report

_STATUS = "deprecated"


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a deprecated rule without another one in `related`, and every place that needs a deprecated rule."""
    if draft.file.status == _STATUS:
        if not draft.file.related:
            at = draft.document.find(["status"])
            help_line = "name the rule that stands in for it: related: [its-id]"
            report.add(Code.DEPRECATED, at, f"`{draft.id}` is deprecated, and nothing stands in for it", help_line)
        return
    for loc, id_ in needed(draft):
        other = pack.drafts.get(id_)
        if other is not None and other.file.status == _STATUS:
            instead = " or ".join(f"`{each}`" for each in other.file.related)
            help_line = f"use {instead}" if instead else "do without it"
            report.add(Code.DEPRECATED, draft.document.find(loc), f"`{id_}` is deprecated", help_line)
