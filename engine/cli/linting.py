"""All of `rules lint`: the files by themselves, rules that make every line be read, and rules that shadow each other, found by
playing their tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from engine.cli.rule_tests import events
from engine.cli.rulebook import with_layouts
from engine.dsl import load_pack
from engine.dsl.advice import advise, in_order
from engine.dsl.codes import Code
from engine.dsl.pack import Pack
from engine.dsl.report import Report
from engine.dsl.rule_test import RuleTest
from engine.match import Matcher
from engine.match.screen import Screen
from engine.match.signs import signs_of
from engine.model.diagnostics import Diagnostic
from engine.model.rules import Plan, Rule


def lint(paths: Sequence[Path]) -> list[Diagnostic]:
    """Return every error and warning about the rules at or under `paths`, by file and place; the tests are played if there is
    no error."""
    pack = load_pack(paths)
    found = advise(pack)
    return found if pack.errors() else in_order([*found, *unscreened(pack), *shadowed(pack)])


def unscreened(pack: Pack) -> list[Diagnostic]:
    """Return a finding for each rule that texts cannot be searched for: one such rule makes a scan read every line."""
    message = "no text is sure to be in each event"
    help_line = "let the condition need an item with words that never change, in the letters of ASCII"
    screens = {each.rule.id: Screen([signs_of(each.items, each.condition)]) for each in pack.plan.signatures}
    return [
        _finding(pack, id_, Code.NOTHING_SURE, message, help_line) for id_, screen in screens.items() if not screen.complete
    ]


def shadowed(pack: Pack) -> list[Diagnostic]:
    """Return a finding for each rule on all of whose firing lines another one fires too, though neither explains the other."""
    rules = {each.rule.id: each.rule for each in pack.plan.signatures}
    told = {id_ for id_, rule in rules.items() if rule.severity != "info"}
    if len(told) < 2:
        return []
    plan = with_layouts(pack.plan)
    matcher = Matcher(plan)
    found: list[Diagnostic] = []
    for id_ in sorted(told):
        over = _over(id_, [test for test in pack.tests[id_] if test.fires is not None], matcher, plan)
        for other in sorted((over & told) - {id_}):
            if not _related(rules[id_], rules[other], plan):
                found.append(_shadowing(pack, id_, other))
    return found


def _over(id_: str, tests: Sequence[RuleTest], matcher: Matcher, plan: Plan) -> frozenset[str]:
    """Return the rules that match every event that `id_` matches in `tests`."""
    over: frozenset[str] = frozenset()
    for event in (event for test in tests for event in events(test, plan)):
        ids = frozenset(match.rule_id for match in matcher.match_event(event))
        if id_ in ids:
            over = over & ids if over else ids
        if len(over) == 1:  # itself: what follows takes nothing back
            break
    return over


def _related(one: Rule, other: Rule, plan: Plan) -> bool:
    """Say whether one of the two explains or continues the other, through others too."""
    below = {rule.id: {*_named(rule)} for rule in plan.rules().values()}
    return other.id in _reached(one.id, below) or one.id in _reached(other.id, below)


def _named(rule: Rule) -> Iterator[str]:
    yield from (id_ for entry in rule.explains for id_ in entry.rules)
    yield from (entry.rule for entry in rule.continues)


def _reached(start: str, below: Mapping[str, set[str]]) -> set[str]:
    reached, waiting = set[str](), [start]
    while waiting:
        fresh = below.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting.extend(fresh)
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
