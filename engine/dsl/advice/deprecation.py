"""A deprecated rule will be removed: it names its replacement, and no other rule needs it."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.links import dependencies
from engine.dsl.pack import Pack
from engine.dsl.report import Report

_STATUS = "deprecated"


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a deprecated rule without a replacement in `related`, and each reference of other rules to a deprecated one."""
    if draft.file.status == _STATUS:
        if not draft.file.related:
            at = draft.document.find(["status"])
            help_line = "name the rule that replaces it: related: [its-id]"
            report.add(Code.DEPRECATED, at, f"`{draft.id}` is deprecated and names no replacement", help_line)
        return
    for loc, id_ in dependencies(draft):
        other = pack.drafts.get(id_)
        if other is not None and other.file.status == _STATUS:
            instead = " or ".join(f"`{related}`" for related in other.file.related)
            help_line = f"use {instead}" if instead else "remove the reference"
            report.add(Code.DEPRECATED, draft.document.find(loc), f"`{id_}` is deprecated", help_line)
