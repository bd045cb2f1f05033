"""A draft of `rules new` says where its author has to write; what is left of that would be read in an alert."""

from __future__ import annotations

from collections.abc import Iterator

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, MapNode, Node, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report

MARK = "WRITE:"  # begins each text that the author has to replace


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each text of the runbook that still begins with MARK."""
    for text in _texts(draft.document.root.get("runbook")):
        if text.value.startswith(MARK):
            report.add(Code.UNFINISHED, text, "this is still the text of the draft", "write what its reader should know")


def _texts(node: Node | None) -> Iterator[TextNode]:
    match node:
        case TextNode():
            yield node
        case ListNode(items=items):
            for item in items:
                yield from _texts(item)
        case MapNode(entries=entries):
            for _, value in entries:
                yield from _texts(value)
