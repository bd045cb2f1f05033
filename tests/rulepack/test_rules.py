"""Every shipped rule passes its own tests, and carries what a reader needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from engine.cli.linting import lint, shadowed, unscreened
from engine.cli.rule_tests import run_test
from engine.dsl import builtin_rules, load_pack, load_tests
from engine.dsl.advice import advise
from engine.dsl.codes import Code
from engine.dsl.rule_test import RuleTest, Tests
from engine.dsl.signs import LINES, lines_with
from engine.model.diagnostics import Diagnostic
from engine.model.rules import Hole, Rule
from tests.rulepack.playing import plan

NO_CASES, CASE_UNTESTED = Code.NO_CASES.id, Code.CASE_UNTESTED.id
MOST_ITEMS = 20  # of one rule: it is taken apart beyond that
OF_CONTROLLERS = ("--bootstrap-controller", ["{bootstrap_controller}"])
OVER_BUDGET = 34  # rules that are beyond it; the number only falls


@cache
def cases_of_rules() -> Tests:
    return load_tests([builtin_rules()])


def rules() -> Sequence[Rule]:
    return tuple(plan().rules().values())


def test_nothing_is_wrong_or_advised_against() -> None:
    pack = load_pack([builtin_rules()])
    findings = [*advise(pack), *unscreened(pack), *shadowed(pack)]
    assert [finding.one_line() for finding in findings if finding.code != NO_CASES] == []


@pytest.mark.slow  # plays the tests of all rules once more
def test_causes_that_no_case_tells_apart_and_cases_that_no_test_shows_become_fewer() -> None:
    """The list is what is still open; a line whose rule was mended goes, and none is added."""
    findings = lint([builtin_rules()])
    still_open = sorted(open_finding(finding) for finding in findings if finding.code in (NO_CASES, CASE_UNTESTED))
    listed = (Path(__file__).parent / "open_findings.txt").read_text(encoding="utf-8").splitlines()
    assert still_open == [line for line in listed if not line.startswith("#")]


def open_finding(finding: Diagnostic) -> str:
    """Return a finding as a line of the list: its code, its rule, and the case."""
    case = finding.message.partition("`")[2].rpartition("`")[0] if finding.code == CASE_UNTESTED else ""
    return f"{finding.code} {Path(finding.path).stem} {case}".strip()


def test_rules_over_the_budget_of_items_become_fewer() -> None:
    over = [signature.rule.id for signature in plan().signatures if len(signature.items) > MOST_ITEMS]
    assert len(over) == OVER_BUDGET, f"{len(over)} rules have more than {MOST_ITEMS} items: {over}"


@pytest.mark.parametrize("rule_id", [rule.id for rule in rules()])  # known without compiling: every worker asks
def test_a_rule_passes_its_own_tests(rule_id: str) -> None:
    outcomes = [run_test(test, plan()) for test in cases_of_rules()[rule_id]]
    assert [(outcome.name, outcome.problems) for outcome in outcomes if outcome.problems] == []


def test_every_rule_has_words_by_which_raw_lines_are_left_out() -> None:
    often = {sign: lines_with(sign) for signature in plan().signatures for sign in signature.signs or ("",)}
    assert {sign: lines for sign, lines in often.items() if lines > LINES / 40} == {}, "what is so common stands in any log"


def test_every_rule_proves_that_it_fires_and_that_it_stays_silent() -> None:
    def proves(cases: Sequence[RuleTest]) -> bool:
        return any(case.shows_firing for case in cases) and any(case.shows_silence for case in cases)

    assert [rule_id for rule_id, cases in cases_of_rules().items() if not proves(cases)] == []


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.severity != "info"], ids=lambda rule: rule.id)
def test_a_rule_that_speaks_up_says_what_to_do_and_where(rule: Rule) -> None:
    always = [step for step in rule.runbook.fix if step.when is None]
    assert rule.runbook.fix and len(always) <= 5, "more steps than a tired reader follows"
    assert rule.runbook.references
    assert all(step.where for step in rule.runbook.fix)


def test_a_command_that_asks_a_controller_is_not_given_the_address_of_a_broker() -> None:
    commands = [(rule.id, c) for rule in rules() for c in (*(step.run for step in rule.runbook.fix), rule.runbook.verify)]
    addresses = [
        (id_, str(option.parts[0]), [part.source for part in address.parts if isinstance(part, Hole)])
        for id_, command in commands
        for option, address in pairwise(command)
        if option.parts[0] in ("--bootstrap-server", "--bootstrap-controller")
    ]
    of_controllers = {id_ for id_, option, holes in addresses if (option, holes) == OF_CONTROLLERS}
    assert of_controllers == {
        id_ for id_, option, holes in addresses if option == OF_CONTROLLERS[0] or holes == OF_CONTROLLERS[1]
    }
