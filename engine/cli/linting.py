"""The checks of `rules lint`.

Each file is checked by itself. Then rules without a sign are reported, because every line must be read for them. At last the
tests are run, to report rules that shadow each other and cases of runbooks that no test covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.cli.rule_tests import events, shown_cases
from engine.cli.rulebook import with_layouts
from engine.dsl import load_pack
from engine.dsl.advice import advise, in_order
from engine.dsl.codes import Code
from engine.dsl.drafts import Draft
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.rule_test import RuleTest
from engine.match import Matcher
from engine.model.diagnostics import Diagnostic
from engine.model.rules import SEVERITIES, Plan, Rule


def lint(paths: Sequence[Path]) -> list[Diagnostic]:
    """Return every error and warning about the rules at or under `paths`, ordered by file and position. The tests are run only
    when there is no error."""
    pack = load_pack(paths)
    findings = advise(pack)
    return findings if pack.errors() else in_order([*findings, *unscreened(pack), *shadowed(pack), *untested_cases(pack)])


def unscreened(pack: Pack) -> list[Diagnostic]:
    """Return a finding for each rule without a text to search for: one such rule forces a scan to read every line."""
    message = "no text is sure to be in each event"
    help_line = "let the condition need an item with words that never change"
    without = [signature.rule.id for signature in pack.plan.signatures if not signature.signs]
    return [_finding(pack, id_, Code.NOTHING_SURE, message, help_line) for id_ in without]


def shadowed(pack: Pack) -> list[Diagnostic]:
    """Return a finding for each pair of rules where one fires on every firing line of the other and neither explains the
    other."""
    rules = {signature.rule.id: signature.rule for signature in pack.plan.signatures}
    reported = {id_ for id_, rule in rules.items() if rule.severity != "info"}
    if len(reported) < 2:
        return []
    plan = with_layouts(pack.plan)
    matcher = Matcher(plan)
    findings: list[Diagnostic] = []
    for id_ in sorted(reported):
        also_firing = _also_firing(id_, [test for test in pack.tests[id_] if test.fires is not None], matcher, plan)
        for other in sorted((also_firing & reported) - {id_}):
            if not _related(rules[id_], rules[other], plan):
                findings.append(_shadowing(pack, id_, other))
    return findings


def untested_cases(pack: Pack) -> list[Diagnostic]:
    """Return a finding for each case of a runbook that no firing test shows.

    Rules that never open an incident are exempt, and rules with a timeline, whose results are not computed here.
    """
    drafts = [draft for id_, draft in pack.drafts.items() if _needs_shown_cases(draft, pack.tests[id_])]
    plan = with_layouts(pack.plan) if drafts else pack.plan
    return [finding for draft in drafts for finding in _untested_cases(draft, pack.tests[draft.id], plan)]


def _needs_shown_cases(draft: Draft, tests: Sequence[RuleTest]) -> bool:
    informs = draft.file.severity == SEVERITIES[0] and not draft.file.escalate
    has_cases = draft.file.runbook is not None and bool(draft.file.runbook.cases)
    return has_cases and not informs and not any(test.timeline for test in tests)


def _untested_cases(draft: Draft, tests: Sequence[RuleTest], plan: Plan) -> tuple[Diagnostic, ...]:
    runbook, report = draft.file.runbook, Report(draft.document)
    shown = shown_cases([test for test in tests if test.fires is not None], plan, draft.id)
    for index, entry in enumerate(runbook.cases if runbook else ()):
        if index not in shown:
            at = draft.document.find(["runbook", "cases", index])
            help_line = "add a test whose log leads to it, with `cause`; an earlier case may hold where this one does"
            report.add(Code.CASE_UNTESTED, at, f"no test shows the case `{entry.when}`", help_line)
    return report.all()


def _also_firing(id_: str, tests: Sequence[RuleTest], matcher: Matcher, plan: Plan) -> frozenset[str]:
    """Return the rules that match every event that `id_` matches in `tests`."""
    rules: frozenset[str] = frozenset()
    for event in (event for test in tests for event in events(test, plan)):
        ids = frozenset(match.rule_id for match in matcher.match_event(event))
        if id_ in ids:
            rules = rules & ids if rules else ids
        if len(rules) == 1:  # only itself is left
            break
    return rules


def _related(rule: Rule, other: Rule, plan: Plan) -> bool:
    """Return whether one of two rules explains or continues the other, directly or through other rules."""
    successors = {rule.id: {*_direct_symptoms_and_stages(rule)} for rule in plan.rules().values()}
    return other.id in _reachable(rule.id, successors) or rule.id in _reachable(other.id, successors)


def _direct_symptoms_and_stages(rule: Rule) -> Iterator[str]:
    yield from (id_ for entry in rule.explains for id_ in entry.rules)
    yield from (entry.rule for entry in rule.continues)


def _reachable(start: str, successors: Mapping[str, set[str]]) -> set[str]:
    reached, pending = set[str](), [start]
    while pending:
        added = successors.get(pending.pop(), set()) - reached
        reached |= added
        pending.extend(added)
    return reached


def _shadowing(pack: Pack, id_: str, other: str) -> Diagnostic:
    message = f"`{other}` fires on every line on which `{id_}` does, so both would be told"
    help_line = (
        f"let one explain the other (`explains: [{{rules: [{other}], by: ...}}]`), or add to its condition what sets it apart"
    )
    return _finding(pack, id_, Code.SHADOWED, message, help_line)


def _finding(pack: Pack, id_: str, code: Code, message: str, help_line: str) -> Diagnostic:
    """Return a finding about the detection of a rule."""
    document = pack.drafts[id_].document
    report = Report(document)
    report.add(code, document.key(["detection"]), message, help_line)
    return report.all()[0]
