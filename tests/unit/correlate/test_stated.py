"""What servers stated about brokers and versions counts where the logs and the configuration say nothing."""

from __future__ import annotations

from itertools import permutations

import pytest
from msgspec.structs import replace

from engine.correlate import Correlator
from engine.correlate.stated import StatedMembers, answers_of, fact_of
from engine.model.incidents import DAWN, Alert, NotEvaluated
from engine.model.matches import Match, answer_sign
from engine.model.pictures import StatedFact
from engine.model.rules import AnswerLines
from tests.building import at, match, progress
from tests.unit.correlate.brokers import DEADLINE, DIES, MINUTE, PLAN, beats, cluster, read, silent

ANSWERS = {"broker": AnswerLines(("broker",), ()), "feature": AnswerLines(("feature",), ())}
ASKING = replace(PLAN, components=tuple(replace(component, answers=ANSWERS) for component in PLAN.components))
STEADY = [*beats("1", 0, 30), *beats("2", 0, 30), *beats("3", 0, 30), *read("1", "2", "3"), progress("asked")]


def stated(number: int, state: str = "unfenced", minute: float = 0, **labels: str) -> Match:
    captures = {"broker": number, "host": f"kafka-{number}", "port": 9092, "rack": "null", "state": state}
    sign, asked = answer_sign("broker", "broker"), {"asked": "kafka-cluster"}
    return match(sign, minute * MINUTE, "asked", labels=labels or asked, **captures)


def brokers_of(alerts: list[Alert]) -> list[tuple[str, str, str]]:
    return [(dict(alert.labels)["broker"], alert.severity, alert.why) for alert in alerts]


def test_a_broker_of_the_cluster_that_never_logged_is_missed() -> None:
    heard = [stated(number) for number in (1, 2, 3)]
    assert silent([*STEADY, *heard], ASKING) == []
    (alert,) = silent([*STEADY, *heard, stated(4)], ASKING)
    assert brokers_of([alert]) == [("4", "low", "the cluster has it, but nothing was ever read from it")]
    assert (alert.items, alert.hearsay) == (("not_collected",), True)  # it explains nothing
    (away,) = silent([*STEADY, *heard, stated(4, "fenced")], ASKING)
    assert (away.severity, away.items, away.hearsay) == ("critical", (), False)


def test_a_broker_that_was_added_is_given_time() -> None:
    assert silent([*STEADY, stated(4, minute=10)], ASKING) == []
    (alert,) = silent([*STEADY, stated(4, minute=2)], ASKING)
    assert alert.starts_at == at(2 * MINUTE)


def test_a_declared_roster_counts_alone() -> None:
    declared = replace(ASKING, context={"brokers": "1,2,3"})
    assert silent([*STEADY, stated(4)], declared) == []


def test_a_line_with_a_time_that_nobody_asked_for_states_nothing() -> None:
    assert silent([*STEADY, stated(4, source="app")], ASKING) == []


@pytest.mark.parametrize(("minute", "status"), [(21.0, None), (DEADLINE / MINUTE + 5, "resolved")])
def test_a_broker_that_is_removed_is_watched_until_then(minute: float, status: str | None) -> None:
    alerts = silent([*cluster(), stated(1), stated(1, "removed", minute)], ASKING)
    assert [alert.status for alert in alerts] == ([] if status is None else [status])
    assert [(alert.starts_at, alert.ends_at, alert.why) for alert in alerts] == (
        [] if status is None else [(at(DIES), at(minute * MINUTE), "removed from the cluster")]
    )


def test_a_broker_that_came_back_is_watched_again() -> None:
    (alert,) = silent([*cluster(), stated(1, "removed", 1), stated(1, "unfenced", 5)], ASKING)
    assert alert.status == "firing"


def test_what_the_cluster_tells_of_is_not_blind() -> None:
    items = [*beats("1", 0, 10), *beats("2", 0, 60), *beats("3", 0, 60), *read("1", "2", "3")]

    def blind(*more: Match) -> list[str]:
        correlator = Correlator(ASKING, "default")
        for item in (*items, *more):
            correlator.observe(item)  # type: ignore[arg-type]
        return [
            found.what for found in correlator.flush() if isinstance(found, NotEvaluated) and found.what.startswith("broker")
        ]

    assert blind() == ["broker 1"]
    assert blind(stated(1)) == []


def test_facts_are_named_by_what_they_are_about_and_pasted_ones_are_the_oldest() -> None:
    answers = answers_of(ASKING)
    fact = fact_of(stated(4), "default", answers)
    assert fact is not None
    assert (fact.kind, fact.name, fact.at, fact.values["state"]) == ("broker", "4", at(0), "unfenced")
    pasted = fact_of(replace(stated(4, source="x"), dated=False), "default", answers)
    assert pasted is not None
    assert pasted.at == DAWN
    gone = fact_of(replace(stated(4), rule_id=answer_sign("broker", "broker", is_gone=True)), "default", answers)
    assert gone is not None
    assert gone.values == {}
    assert fact_of(match("component:broker/names", 0, "x", member="1"), "default", answers) is None


def test_states_are_the_same_in_any_order() -> None:
    facts = [
        StatedFact("default", "broker", "1", at(second), {"state": state})
        for second, state in ((0, "unfenced"), (5, "unfenced"), (9, "fenced"), (12, "removed"))
    ]
    finals = set()
    for order in permutations(facts):
        members = StatedMembers()
        for fact in order:
            members.add(fact)
        finals.add((tuple(members.brokers["1"]), members.removed_at("1"), tuple(members.present())))
    assert finals == {(((at(0), "unfenced"), (at(9), "fenced"), (at(12), "removed")), at(12), ())}


def test_versions_are_those_that_the_software_has_not_those_that_are_finalized() -> None:
    members = StatedMembers()
    feature = {"version": "3.9-IV0", "supported": "4.3-IV0"}
    assert members.add(StatedFact("default", "feature", "metadata.version", at(5), feature))
    assert not members.add(StatedFact("default", "feature", "group.version", at(5), feature))
    assert members.add(StatedFact("default", "worker-version", "x", at(0), {"version": "3.9.1"}))
    assert members.add(StatedFact("default", "worker-version", "x", at(60), {"version": "4.3.1"}))
    assert [members.version(name, at(0)) for name in ("broker", "controller", "client")] == ["4.3-IV0", "4.3-IV0", None]
    assert [members.version("connect", at(second)) for second in (0, 59, 60)] == ["3.9.1", "3.9.1", "4.3.1"]
