"""The reader of an alert learns nothing from a sentence about what the log lacks; without a value its clause is left out."""

from __future__ import annotations

import re
from itertools import chain

from engine.dsl.codes import Code
from engine.dsl.document import texts
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report

_INSTEAD = re.compile(r"\{[a-z][a-z0-9_.]*(?:\|[a-z][a-z0-9_]*(?=\|))*\|(?P<instead>[^{}|]+)\}")
_ABSENT = re.compile(
    r"\bnot (?:named|printed|shown|told)\b|\bunnamed\b|\bno (?:more|\w+) is (?:in|named|printed|said)\b|\bsays? no more\b"
    r"|\bnot in (?:the|this) line\b|\bno \w+ printed\b|^whatever\b|^that (?:printed|wrote|logged)\b"
)
_WHERE = re.compile(r"\bstands?\b|Caused by|\btrace\b")  # the words tell where the value is


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report the words behind the bar of a hole that only state that its value is missing."""
    root = draft.document.root
    for text in chain(texts(root.get("title")), texts(root.get("runbook")), texts(root.get("told_as"))):
        for match in _INSTEAD.finditer(text.value):
            instead = match["instead"]
            if _ABSENT.search(instead) and not _WHERE.search(instead):
                message = f"`{instead}` only states that a value is missing"
                help_line = (
                    f"write {match[0][: match.start('instead') - match.start()]}}} and put what needs it within round brackets"
                )
                report.add(Code.STATES_ABSENCE, text, message, help_line)
