"""Storms of many entities: alerts are compared with few others and linked as if with all; what is too many is one incident."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from msgspec.structs import replace

import engine.incident.links as links_module
from engine.incident import MemoryLedger, decide, group
from engine.incident.alert_groups import alert_groups, ordered
from engine.incident.links import link_alerts
from engine.model.incidents import OTHERS, Alert, Incident, Roster, Verdict
from engine.model.rules import SEVERITIES, Continues, Plan
from tests.unit.incident.scene import alert, explains, plan, rule

RULES = plan(
    rule("cause", explains=[explains("symptom", topic="topic"), replace(explains("symptom stage"), at_least="high")]),
    rule("sign", "info", explains=[explains("cause", topic="topic")]),
    rule("symptom", explains=[explains("far", source="source")]),
    rule("stage", continues=[Continues("cause", {"topic": "topic"}, 600)]),
    rule("far"),
)


def alerts_of(random: Random, many: int) -> list[Alert]:
    made = [
        alert(
            random.choice(["cause", "sign", "symptom", "stage", "far"]),
            start := random.randrange(60),
            start + random.randrange(5),
            over=random.random() < 0.5,
            severity=random.choice(SEVERITIES),
            status=random.choice(["", "", "pending"]),
            sources=[random.choice("ab")],
            captures={"topic": random.choice("xyz")} if random.random() < 0.5 else {},
            events=[f"e{n}"],
            **({"topic": random.choice(["x", "y", "z", "?a", OTHERS])} if random.random() < 0.8 else {"broker": str(n)}),
        )
        for n in range(many)
    ]
    by_key: dict[object, list[Alert]] = {}
    for each in made:
        if all(each.starts_at != other.starts_at for other in by_key.get(each.key, ())):
            by_key.setdefault(each.key, []).append(each)
    return ordered({key: tuple(each) for key, each in by_key.items()})  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(40))
def test_alerts_are_linked_as_if_each_were_compared_with_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    some = alerts_of(Random(seed), 60)
    by_values = alert_groups(link_alerts(some, RULES))

    def all_of(peers: links_module.Peers, rule_id: str, *_: object) -> Sequence[int]:
        return peers.by_rule.get(rule_id, ())

    monkeypatch.setattr(links_module.Peers, "agreeing", all_of)
    monkeypatch.setattr(links_module.Peers, "in_reach", lambda _, __, positions, *___: positions)
    monkeypatch.setattr(links_module, "MOST_CAUSES", None)
    assert by_values == alert_groups(link_alerts(some, RULES))
    assert any(trouble.symptoms or trouble.stages for trouble in by_values)


def test_the_cost_of_a_storm_is_in_line_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = [0]
    explain = links_module._explains

    def counted(*given: object) -> bool:
        compared[0] += 1
        return explain(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(links_module, "_explains", counted)
    for rules, apart in (("cause", "symptom"), 1 / 100), (("symptom", "far"), 30.0):
        storm = [alert(id_, n * apart, over=True, sources=["a"], topic=f"t{n}") for n in range(1000) for id_ in rules]
        found = alert_groups(link_alerts(ordered({each.key: (each,) for each in storm}), RULES))
        assert len(found) == 1000 if rules[0] == "cause" else len(found) >= 1000
        assert compared[0] < 10 * len(storm)


def test_the_incident_of_an_entity_that_is_not_kept_apart_any_more_becomes_part_of_that_of_all_others() -> None:
    one, others = alert("far", 1, topic="x"), alert("far", 2, topic=OTHERS, count=400)
    ledger = MemoryLedger()

    def after(*verdicts: Verdict) -> list[Incident]:
        return list(group(verdicts, RULES, ledger))

    (opened,) = after(Verdict(one.key, (one,)))
    told = {each.id: each for each in after(Verdict(one.key, ()), Verdict(others.key, (others,)))}
    merged = told.pop(opened.id)
    (of_others,) = told.values()
    assert (merged.status, merged.merged_into) == ("merged", of_others.id)
    assert of_others.title == "Others, not kept apart: far"
    assert of_others.count == 400


def test_nobody_s_double_is_taken_for_all_the_others() -> None:
    vague, others = alert("far", 1, topic="?a", sources=["a"]), alert("far", 1, 5, topic=OTHERS, sources=["a"])
    assert len(alert_groups(link_alerts(ordered({each.key: (each,) for each in (vague, others)}), RULES))) == 2


def test_an_incident_tells_a_bounded_number_of_symptoms_and_how_many_others_there_are() -> None:
    root = alert("cause", 0, broker="1", severity="critical")
    made: Plan = plan(rule("cause", explains=[explains("symptom")]), rule("symptom"))
    symptoms = [alert("symptom", 1, topic=f"t{n}", events=[f"e{n}"]) for n in range(2000)]
    known = {each.key: (each,) for each in (root, *symptoms)}
    (incident,) = decide(known, [], made, Roster("prod", {}), lambda _: {})
    assert len(incident.symptoms) == 501
    assert incident.symptoms[-1].title == "1,500 others such as: symptom"
    assert sum(each.count for each in incident.symptoms) == 2000
