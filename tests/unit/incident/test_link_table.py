"""What the rules of a plan declare stands in one table, seen from either rule."""

from __future__ import annotations

from datetime import timedelta

from engine.incident.link_table import earlier, later, link_table
from engine.model.incidents import DAWN, EVER
from engine.model.rules import Absence, Continues, Explains
from tests.building import absence, plan, signature

CAUSE = Explains(("symptom", "other"), {"broker": "node"}, 60.0, 600.0, at_least="high", until_s=30.0)
PLAN = plan(
    signature("cause", explains=(CAUSE,), reopen_window_s=5.0),
    signature("symptom", reopen_window_s=7.0),
    signature("other"),
    signature("later", continues=(Continues("cause", {"topic": "stream"}, 90.0),), reopen_window_s=1.0),
    absence("silent", Absence("broker", 60.0)),
)


def test_a_link_stands_under_both_of_its_rules() -> None:
    table = link_table(PLAN)
    assert [(link.first, link.second) for link in table.outward["cause"]] == [
        ("cause", "symptom"),
        ("cause", "other"),
        ("cause", "later"),
    ]
    (explained,), (continued,) = table.explaining("symptom"), table.continued("later")
    assert (explained, continued) == (table.outward["cause"][0], table.outward["cause"][2])
    assert [*table.continued("symptom"), *table.explaining("later"), *table.explaining("cause")] == []


def test_keys_are_of_the_first_rule_then_of_the_second_and_times_as_they_are_declared() -> None:
    explained, _, continued = link_table(PLAN).outward["cause"]
    assert (explained.by, continued.by) == ((("broker", "node"),), (("stream", "topic"),))
    assert (explained.before, explained.after, explained.until) == tuple(timedelta(seconds=s) for s in (60, 600, 30))
    assert (continued.before, continued.after) == (timedelta(), timedelta(seconds=90))
    assert (explained.in_earnest, continued.in_earnest) == (True, False)


def test_a_rule_reaches_back_as_far_as_anything_that_it_may_be_linked_with() -> None:
    table = link_table(PLAN)
    reach = {rule_id: span.total_seconds() for rule_id, span in table.reach.items()}
    assert (reach["cause"], reach["symptom"], reach["later"]) == (60.0, 600.0, 90.0)
    assert (table.reopen["symptom"], table.absences) == (timedelta(seconds=7), frozenset(("silent",)))


def test_times_stay_within_the_calendar() -> None:
    day = timedelta(days=1)
    assert (earlier(DAWN + day / 2, day), later(EVER - day / 2, day)) == (DAWN, EVER)
    assert (earlier(DAWN + 2 * day, day), later(EVER - 2 * day, day)) == (DAWN + day, EVER - day)
