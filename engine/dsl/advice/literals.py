"""A pattern without a fixed word must be tried on every line."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import patterns
from engine.dsl.patterns import MIN_LITERAL, compile_pattern
from engine.dsl.report import Report


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each pattern that no fixed word can be looked for first."""
    for pattern in patterns(draft):
        if pattern.value.strip() and not compile_pattern(pattern.value).literals:
            message = f"the pattern has no fixed word of {MIN_LITERAL} characters"
            report.add(Code.NO_LITERAL, pattern, message, "add the words around it that never change")
