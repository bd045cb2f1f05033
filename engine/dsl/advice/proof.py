"""A rule proves that it fires, and that it stays silent about what is nearest to it."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report a rule that lacks a test that fires, or a near miss."""
    at = draft.document.root.key("tests") or draft.document.root
    if not draft.document.whole(["tests"], draft.tests):
        return  # some were wrong, and that has been said
    if not any(test.shows_firing for test in draft.tests):
        report.add(Code.NO_FIRING_TEST, at, f"`{draft.id}` has no test that fires", "add a real log text with `fires: {...}`")
    if not any(test.shows_silence for test in draft.tests):
        help_line = "add the log text that is nearest to it without being it, with `silent: true`"
        report.add(Code.NO_SILENT_TEST, at, f"`{draft.id}` has no near miss", help_line)
