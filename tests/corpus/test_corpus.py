"""What people post is diagnosed: the right rule first with the facts of the log, and nothing at all about what is benign."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.corpus.cases import BENIGN, HERE, Outcome, outcomes, unnamed

pytestmark = pytest.mark.slow

RULES = sorted(path.stem for path in HERE.glob("*.yml"))


def of_rule(rule: str) -> Sequence[Outcome]:
    return [outcome for outcome in outcomes().values() if outcome.case.rule == rule]


@pytest.mark.parametrize("rule", RULES)
def test_posted_logs_are_diagnosed(rule: str) -> None:
    wrong = {each.case.name: each.faults for each in of_rule(rule) if each.faults and not each.case.missed}
    assert wrong == {}


@pytest.mark.parametrize("rule", RULES)
def test_a_case_that_is_diagnosed_is_not_called_missed(rule: str) -> None:
    assert [each.case.name for each in of_rule(rule) if each.case.missed and not each.faults] == []


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != BENIGN])
def test_the_first_incident_names_the_facts_of_the_log(rule: str) -> None:
    silent = {each.case.name: unnamed(each) for each in of_rule(rule) if unnamed(each)}
    assert silent == {}


ENDS = re.compile(
    r"\b(?:server|broker|node|worker|registry|process)\b[^:]{0,60} (?:does not start|cannot start|ended|crashed|stops\b"
    r"|does not run|aborted|ran out of memory)|(?:gave up|stopped) for good|stopped working",
    re.IGNORECASE,
)
LOSES = re.compile(
    r"\brecords? (?:are|were|is|was) lost\b|\blost records\b|\bis gone from this partition|\bare gone from", re.IGNORECASE
)


def test_what_does_not_start_or_ends_and_what_loses_records_is_at_least_high() -> None:
    raised = [(id_, incident) for id_, outcome in outcomes().items() for incident in outcome.incidents]
    graded = {
        (id_, incident.rule, incident.severity)
        for id_, incident in raised
        if ENDS.search(incident.title) or LOSES.search(f"{incident.title} {incident.impact}")
    }
    assert {each for each in graded if each[2] not in ("high", "critical")} == set()
    assert len(graded) > 100


def test_nobody_has_to_follow_more_than_five_steps() -> None:
    long = {id_ for id_, outcome in outcomes().items() for incident in outcome.incidents if len(incident.fix) > 5}
    assert long == set()


def test_every_excerpt_is_judged() -> None:
    files = set(RULES)
    judged = [outcome for outcome in outcomes().values() if outcome.case.rule not in files and not outcome.case.missed]
    assert [
        (outcome.case.id, outcome.faults, unnamed(outcome)) for outcome in judged if outcome.faults or unnamed(outcome)
    ] == []
