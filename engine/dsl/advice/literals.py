"""A pattern without a fixed word is tried on every line, which slows all rules."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.parts import patterns
from engine.dsl.patterns import MIN_LITERAL, compile_pattern
from engine.dsl.report import Report


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each pattern without a fixed word of MIN_LITERAL characters, by which lines are preselected."""
    for pattern in patterns(draft):
        if pattern.value.strip() and not compile_pattern(pattern.value).literals:
            message = f"the pattern has no fixed word of {MIN_LITERAL} characters"
            report.add(Code.NO_LITERAL, pattern, message, "add the words around it that never change")
