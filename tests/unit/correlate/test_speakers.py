"""What excuses, takes back or resolves counts from those who may say so: see docs/security.md."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from engine.model.incidents import Alert
from engine.model.matches import Match
from engine.model.records import NOBODY, SPEAKS_FOR
from engine.model.rules import Absence, Clear, Component, Explains, Plan, Sooner, Stop
from tests.building import absence, broker, match, plan, seen, signature
from tests.unit.correlate.brokers import DIES, beats, cluster, complaint, read, silent
from tests.unit.correlate.saying import alerts

CONTROLLER = Component("controller", "controller", (), unless="broker")
SOONER = Sooner(("lost",), {"broker": "node"}, 60.0, ("back", "let-in"))
PLANNED = Stop(("stopping", "granted"), 120.0)
SPOKEN = [
    signature("lost", severity="info"),
    signature("back", severity="info", speaker=("broker",)),
    signature("let-in", severity="info", speaker=("controller",)),
    signature("stopping", severity="info", speaker=("broker",)),
    signature("granted", severity="info", speaker=("controller",)),
]
PLAN = plan(
    *SPOKEN,
    absence("silent", Absence("broker", 0.0, SOONER, PLANNED)),
    components=(broker(), CONTROLLER),
    context={"bootstrap": "b:9092"},
)


def names(source: str, component: str, member: int, times: int = 2) -> list[Match]:
    return [match(f"component:{component}/names", second, source, member=member) for second in range(times)]


def excused(said: Iterable[object]) -> bool:
    return silent([*cluster(), *said], PLAN) == []


def test_its_own_log_says_that_it_stops() -> None:
    assert not excused([])
    assert excused([match("stopping", DIES + 1, "1.log", broker=1)])


@pytest.mark.parametrize("source", ["app.log", "2.log"])
def test_neither_an_application_nor_another_broker_says_so(source: str) -> None:
    assert not excused([match("stopping", DIES + 1, source, broker=1)])


def test_a_log_that_two_brokers_name_themselves_in_speaks_for_neither() -> None:
    stops = match("stopping", DIES + 1, "mixed.log", broker=1)
    assert excused([stops, *names("mixed.log", "broker", 1)])
    assert not excused([stops, *names("mixed.log", "broker", 1), *names("mixed.log", "broker", 7)])


def test_a_controller_speaks_for_the_brokers_also_where_it_is_one_itself() -> None:
    granted = [match("granted", DIES + 1, "9.log", broker=1)]
    assert not excused(granted)
    assert not excused([*names("9.log", "controller", 9, times=1), *granted])
    assert excused([*names("9.log", "controller", 9), *granted])
    combined = [match("granted", DIES + 1, "2.log", broker=1), *names("2.log", "controller", 2)]
    assert excused(combined)


def test_what_names_nobody_is_of_the_one_whose_log_it_is() -> None:
    assert excused([match("stopping", DIES + 1, "1.log")])
    assert not excused([match("stopping", DIES + 1, "app.log")])


def test_the_configuration_decides() -> None:
    granted = match("stopping", DIES + 1, "ansible.log", broker=1, labels={SPEAKS_FOR: "broker"})
    assert excused([granted])
    assert excused([replace(granted, labels={**granted.labels, SPEAKS_FOR: "controller 9, broker 1"})])
    assert not excused([replace(granted, labels={**granted.labels, SPEAKS_FOR: "broker 2"})])
    assert not excused(
        [match("stopping", DIES + 1, "app.log", broker=1, labels={SPEAKS_FOR: NOBODY}), *names("app.log", "broker", 1)]
    )


def test_a_log_that_may_speak_for_nobody_shows_no_life() -> None:
    forged = [replace(each, labels={**each.labels, SPEAKS_FOR: NOBODY}) for each in names("app.log", "broker", 1)]
    later = [match("lost", DIES + 3000, "app.log", node=7, labels={SPEAKS_FOR: NOBODY})]
    (alert,) = silent([*cluster(), *forged, *later], PLAN)
    assert alert.ends_at is None


def test_a_log_that_may_speak_for_one_broker_shows_no_life_of_another() -> None:
    granted = {SPEAKS_FOR: "broker 2"}
    forged = [replace(each, labels={**each.labels, **granted}) for each in names("app.log", "broker", 1)]
    later = [match("lost", DIES + 3000, "app.log", node=7, labels=granted), seen("app.log", DIES + 2000, DIES + 3000)]
    (alert,) = silent([*cluster(), *forged, *later], PLAN)
    assert alert.ends_at is None


@pytest.mark.parametrize(
    ("rule", "source", "taken_back"),
    [("back", "app.log", False), ("let-in", "app.log", False), ("let-in", "9.log", True), ("back", "1b.log", True)],
)
def test_a_complaint_is_taken_back_by_the_broker_or_by_a_controller(rule: str, source: str, taken_back: bool) -> None:
    young = [*beats("1", 0, 5, step=2.5), *beats("2", 0, 30), *beats("3", 0, 30), *read("1", "1b", "2", "3")]
    said = [complaint(400), match(rule, 420, source, node=1, broker=1)]
    known = [*names("9.log", "controller", 9), *names("1b.log", "broker", 1)]
    assert (silent([*young, *known, *said], PLAN) == []) == taken_back


def test_a_rule_without_speaker_is_believed_whoever_it_is() -> None:
    anybody = plan(
        *(signature(name, severity="info") for name in ("lost", "back", "let-in", "stopping", "granted")),
        *PLAN.correlations,
        components=PLAN.components,
    )
    assert silent([*cluster(), match("stopping", DIES + 1, "app.log", broker=1)], anybody) == []


ENDED = plan(
    signature("trouble", clear=Clear(in_s=0.0, rules=("over",))),
    signature("over", severity="info", speaker=("broker",)),
    components=(broker(),),
)


def status(*said: Match, of: Plan = ENDED, rule: str = "trouble") -> list[Alert]:
    return alerts(
        [match("trouble", 10, "1.log"), *said, seen("1.log", 900, 900), *beats("2", 0, 30), *read("1", "2")], of, rule
    )


def test_an_end_is_believed_of_a_broker_and_of_the_log_that_tells_the_trouble() -> None:
    assert [each.status for each in status(match("over", 60, "app.log"))] == ["firing"]
    assert [each.status for each in status(match("over", 60, "1.log"))] == ["resolved"]
    assert [each.status for each in status(match("over", 60, "2.log"))] == ["resolved"]


STOPPING = plan(
    signature(
        "stopping",
        severity="info",
        speaker=("broker",),
        entity=("cluster", "broker"),
        explains=(Explains(("trouble",), {"cluster": "cluster"}, 60.0, 60.0, True),),
    ),
    signature("trouble"),
    components=(broker(),),
)


@pytest.mark.parametrize(("source", "hearsay"), [("app.log", True), ("2.log", False), ("3.log", True)])
def test_what_nobody_says_who_may_is_hearsay(source: str, hearsay: bool) -> None:
    said = [match("stopping", 10, source, broker=2), *beats("2", 0, 30), *beats("3", 0, 30), *read("2", "3")]
    (alert,) = alerts(said, STOPPING, "stopping")
    assert alert.hearsay == hearsay


def test_what_others_repeat_adds_nothing_to_what_is_said_by_who_may() -> None:
    said = [match("stopping", second, source, broker=2) for second, source in ((10, "2.log"), (500, "app.log"))]
    (alert,) = alerts([*said, *beats("2", 0, 30), *read("2")], STOPPING, "stopping")
    assert (alert.count, alert.sources, alert.hearsay) == (1, ("2.log",), False)
