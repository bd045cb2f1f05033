"""A rule that has a text in another language has all of them, with the holes of the English."""

from __future__ import annotations

from engine.dsl.codes import Code
from engine.dsl.document import ListNode, TextNode
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.templates import holes
from engine.dsl.translations import TRANSLATED, prose_locs, translated_loc


def check(draft: Draft, pack: Pack, report: Report) -> None:
    """Report each text in another language whose holes are not those of the English, and each that is missing beside others."""
    for language in TRANSLATED:
        _check(draft, report, language)


def _check(draft: Draft, report: Report, language: str) -> None:
    document = draft.document
    pairs = [(document.find(loc), document.find(translated_loc(loc, language))) for loc in prose_locs(draft.file)]
    is_translated = any(isinstance(translation, TextNode) for _, translation in pairs)
    for english, translation in pairs if is_translated else ():
        if not isinstance(translation, TextNode):
            message = f"this text has no `{language}`, and others of the rule have it"
            report.add(Code.TRANSLATION, english, message, f"write it into a map `{language}` beside this key")
        elif isinstance(english, TextNode) and (differing := holes(english.value) ^ holes(translation.value)):
            names = ", ".join(f"{{{name.rstrip('|').replace('||', '|')}}}" for name in sorted(differing))
            report.add(Code.TRANSLATION, translation, f"only one of the two languages has {names}", "use the same holes")
    checks, translated = (document.find(loc) for loc in (["runbook", "next_checks"], ["runbook", language, "next_checks"]))
    if isinstance(checks, ListNode) and isinstance(translated, ListNode) and len(translated.items) > len(checks.items):
        report.add(Code.TRANSLATION, translated, "there are more checks than in English", "leave out what is too much")
