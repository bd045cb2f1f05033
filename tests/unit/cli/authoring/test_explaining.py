"""Why a rule fires on a log or not."""

from __future__ import annotations

from engine.cli.authoring.explaining import Explanation, explain
from tests.rulepack.playing import SAMPLES, plan


def lines(explanation: Explanation) -> list[str]:
    return list(explanation.lines(3))


def test_a_correlation_says_its_result_first_and_of_rules_that_it_does_not_count_only_how_often_they_fire() -> None:
    text = lines(explain("broker-silent", plan(), [str(SAMPLES / "4-silent-broker")]))
    assert text[:3] == [
        "broker-silent: 1 of its alerts hold or held",
        "  firing broker=1 since 2022-10-05 17:05:39 UTC, count 1",
        "counts no matches: it waits for lines that do not come",
    ]
    assert "  client-node-unreachable on 6 of 138 events" in text
    assert len(text) < 15


def test_a_correlation_explains_what_the_correlations_that_it_counts_are_made_of() -> None:
    story = SAMPLES / "2-connect-error-handling" / "connect-worker.log"
    text = lines(explain("connect-task-restart-loop", plan(), [str(story)]))
    assert text[:2] == ["connect-task-restart-loop: it never holds", "counts connect-task-down (0)"]
    assert any(line.startswith("connect-task-stated-failed fires on 0 of ") for line in text)
