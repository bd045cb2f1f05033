"""A rule has a test in which it fires, and a near miss on which it stays silent."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a rule without a test in which it fires, or without a near miss."""
    at = draft.document.root.key("tests") or draft.document.root
    if not draft.document.whole(["tests"], draft.tests):
        return  # some tests were wrong, which is already reported
    if not any(test.shows_firing for test in draft.tests):
        report.add(
            Code.NO_FIRING_TEST, at, f"`{draft.id}` has no test in which it fires", "add a real log text with `fires: {...}`"
        )
    if not any(test.shows_silence for test in draft.tests):
        help_line = "add the most similar log text on which it must not fire, with `silent: true`"
        report.add(Code.NO_SILENT_TEST, at, f"`{draft.id}` has no near miss", help_line)
