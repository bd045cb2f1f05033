"""What a silence is told with, on what grounds, and who is not judged for want of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.correlate import Correlator
from engine.correlate.correlator import AHEAD
from engine.model.incidents import Evidence, NotEvaluated, Verdict
from engine.model.rules import Absence, Heartbeat, Stop
from tests.building import absence, at, broker, contains, counting, match, plan, seen, tick
from tests.unit.correlate.brokers import (
    DEADLINE,
    DIES,
    INFORM,
    MINUTE,
    NOT_BACK,
    PLAN,
    SOONER,
    beats,
    cluster,
    complaint,
    read,
    silent,
    young,
)
from tests.unit.correlate.saying import alerts, in_batches

ALONE = plan(*INFORM, absence("silent", Absence("broker")), components=(broker(),))

both = pytest.mark.parametrize("restart", [False, True], ids=["same process", "new processes"])


def test_why_is_told() -> None:
    assert [a.why for a in silent(cluster())] == ["no line since; or its log was collected earlier"]
    assert [a.why for a in silent([*young(999, 999), complaint(100)])] == ["others cannot reach it"]


def test_a_rule_that_no_complaint_brings_forward_waits_for_the_deadline() -> None:
    assert silent([*young(999, 999), complaint(100)], ALONE) == []
    (alert,) = silent([*cluster(), complaint(DIES + 33)], ALONE)
    assert (alert.last_seen, alert.why) == (at(DEADLINE), "no line since; or its log was collected earlier")


def test_the_last_heartbeat_and_the_first_complaints_prove_it() -> None:
    complaints = [complaint(DIES + seconds) for seconds in (-1, 33, 40, 50, 60)]
    (alert,) = silent([*cluster(), *complaints])
    last_beat = next(item for item in beats("1", 20, 20) if "heartbeat" in getattr(item, "rule_id", ""))
    assert alert.evidence == (last_beat.event_id, *(each.event_id for each in complaints[1:4]))  # type: ignore[union-attr]
    assert (alert.events, alert.dated) == ((alert.evidence[0],), True)


def test_without_a_steady_heartbeat_the_complaints_are_the_proof() -> None:
    (alert,) = silent([*young(999, 999), complaint(100)])
    assert (alert.evidence, alert.events) == ((complaint(100).event_id,), ())


def test_a_line_of_one_that_was_complained_of_ends_its_silence() -> None:
    (alert,) = silent([*cluster(until=120.0), complaint(DIES + 33), *beats("1", 50, 120)])
    assert (alert.status, alert.why, alert.ends_at) == ("resolved", "others cannot reach it", at(3000))


def test_a_line_at_the_very_deadline_is_too_late() -> None:
    minute = DEADLINE / MINUTE
    assert silent([*cluster(until=120.0), *beats("1", minute - 0.01, 120)]) == []
    (alert,) = silent([*cluster(until=120.0), *beats("1", minute, 120)])
    assert (alert.status, alert.ends_at) == ("resolved", at(DEADLINE))


def test_nobody_is_judged_by_complaints_alone() -> None:
    assert silent([*beats("1", 0, 0), *beats("1", 0.5, 0.5), match("lost", 100, "app.log", node=1), *read("1")]) == []


def test_a_complaint_that_names_nobody_says_nothing() -> None:
    unnamed = [match("lost", seconds, source) for seconds, source in ((30, "1.log"), (100, "2.log"))]
    assert silent([*young(999, 999), *unnamed]) == []
    assert silent([*young(999, 999), match("lost", 30, "1.log", labels={"broker": "1"})]) == []


def test_a_stop_may_be_told_by_another_one_which_names_it() -> None:
    near, late = (match("stopping", DIES + seconds, "2.log", broker="1") for seconds in (120, 121))
    assert silent([*cluster(), near]) == []
    assert len(silent([*cluster(), late])) == 1
    granted = Stop(("stopping",), 120.0, {"broker": "stopped"})
    made = plan(*INFORM, absence("silent", Absence("broker", 0.0, SOONER, granted)), components=(broker(),))
    assert silent([*cluster(), match("stopping", DIES, "2.log", stopped=1, node=3)], made) == []


def test_the_fastest_heartbeat_that_was_kept_up_arms() -> None:
    two = (Heartbeat(contains("Removed 0 expired"), 600.0), Heartbeat(contains("tick"), 60.0))
    made = plan(*INFORM, absence("silent", Absence("broker")), components=(replace(broker(), heartbeats=two),))
    fast = [match("component:broker/heartbeat", s, "1.log", beat=1, every_s=60.0) for s in range(0, 1201, 60)]
    assert [a.last_seen for a in silent([*cluster(until=120.0), *fast], made)] == []  # the others print every ten minutes
    often = [item for n in "23" for item in beats(n, 0, 60, step=1.0)]
    assert [a.last_seen for a in silent([*cluster(), *often, *fast], made)] == [at(DIES + 150)]
    missed = [each for each in fast if each.at < at(DIES - 150)]
    assert [a.last_seen for a in silent([*cluster(), *often, *missed, seen("1.log", 1000, DIES)], made)] == [at(DEADLINE)]


def test_a_clock_that_is_ahead_is_no_witness() -> None:
    assert len(silent([*cluster(until=60.0), *beats("3", 60, 70), tick(70 * MINUTE)])) == 1
    assert silent([*cluster(until=60.0), *beats("3", 60, 70), tick(60 * MINUTE)]) == []


def test_the_heartbeat_that_proves_it_may_have_been_read_long_before() -> None:
    state: dict[str, str] = {}
    for batch in (cluster(until=30.0), [item for n in "23" for item in beats(n, 40, 60)]):
        correlator = Correlator(PLAN, "default", state)
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        found = correlator.flush()
    (verdict,) = (f for f in found if isinstance(f, Verdict) and f.key[1] == "silent")
    assert [(f.event_id, f.at) for f in found if isinstance(f, Evidence)] == [(verdict.alerts[0].evidence[0], at(DIES))]


@both
def test_what_was_printed_before_counts_when_time_has_come(restart: bool) -> None:
    said = in_batches([cluster(until=30.0), [complaint(DIES + 33)], [seen("2.log", DIES, DIES + 93)]], PLAN, restart)
    (alert,) = (alert for key, found in said.items() if key[1] == "silent" for alert in found)
    assert (alert.why, alert.last_seen, len(alert.evidence)) == ("others cannot reach it", at(DIES + 93), 2)


@both
def test_live_the_tick_that_came_before_stands_in_for_others(restart: bool) -> None:
    said = in_batches([[tick(160)], [*young(101, 101), complaint(100)]], PLAN, restart)
    assert [len(found) for key, found in said.items() if key[1] == "silent"] == [1]


@both
def test_a_line_that_was_read_late_takes_back_what_an_earlier_batch_said(restart: bool) -> None:
    batches: list[list[object]] = [
        [*young(101, 101), complaint(100)],
        [seen("2.log", 101, 999), seen("3.log", 101, 999)],
        [seen("1.log", 150, 150)],
    ]
    assert [len(found) for key, found in in_batches(batches[:2], PLAN, restart).items() if key[1] == "silent"] == [1]
    assert [key for key in in_batches(batches, PLAN, restart) if key[1] == "silent"] == []


@both
def test_a_source_that_turns_out_to_be_nobodys_takes_its_silence_back(restart: bool) -> None:
    doubt = [match("component:broker/names", seconds, "1.log", member="9") for seconds in (5, 6)]
    assert [key for key in in_batches([cluster(), doubt, []], PLAN, restart) if key[1] == "silent"] == []


@pytest.mark.parametrize(
    ("made", "size", "listed"),
    [
        pytest.param(PLAN, 2, "no steady heartbeat seen; silent needs others to complain", id="complaints"),
        pytest.param(ALONE, 3, "no steady heartbeat seen, which silent needs", id="heartbeat"),
        pytest.param(ALONE, 2, "", id="too-few-to-be-asked"),
    ],
)
def test_whose_silence_alone_is_no_verdict_is_listed_with_what_it_needs(made: object, size: int, listed: str) -> None:
    correlator = Correlator(made, "default")  # type: ignore[arg-type]
    for item in [*beats("1", 0, 10), *(item for n in range(2, size + 1) for item in beats(str(n), 0, 60))]:
        correlator.observe(item)
    found = [(f.what, f.why) for f in correlator.flush() if isinstance(f, NotEvaluated) and f.what]
    assert found == ([("broker 1", listed)] if listed else [])


def declared(*numbers: str) -> list[object]:
    return [item for n in numbers for item in [*beats(n, 0, 30), seen(f"{n}.log", 0, 40)]] + [*read(*numbers)]


def test_two_that_print_are_enough_to_miss_a_third() -> None:
    (alert,) = silent(declared("2", "3"), replace(PLAN, context={"brokers": "2, 3, 10"}))
    assert alert.key == ("default", "silent", (("broker", "10"), ("cluster", "default")))
    assert (alert.status, alert.severity, alert.starts_at, alert.last_seen) == ("firing", "critical", at(0), at(25 * MINUTE))
    assert (alert.count, alert.ends_at, alert.why) == (1, None, "declared, but nothing was ever read from it")
    assert silent(declared("2"), replace(PLAN, context={"brokers": "2, 3, 10"})) == []
    assert silent([tick(0)], replace(PLAN, context={"brokers": "2, 3, 10"})) == []


def test_who_was_never_heard_counts_for_others_though_no_line_proves_it() -> None:
    made = plan(*PLAN.signatures, *PLAN.correlations, counting("outer", ["silent"], 1, 60.0), components=PLAN.components)
    (alert,) = alerts(declared("2", "3"), replace(made, context={"brokers": "2,3,10"}), "outer")
    assert (alert.starts_at, alert.sources) == (at(0), ("",))


def test_the_brokers_of_a_cluster_are_its_own() -> None:
    context = {"brokers": "2,3,10", "default.brokers": "2,3,11,"}
    assert [dict(a.key[2])["broker"] for a in silent(declared("2", "3"), replace(PLAN, context=context))] == ["11"]


def test_who_was_never_heard_is_not_one_that_was_stopped() -> None:
    long_after = [seen(f"{n}.log", 0, 6 * 3600) for n in "23"]
    assert silent([*declared("2", "3"), *long_after], replace(NOT_BACK, context={"brokers": "2,3,10"})) == []


def test_what_is_printed_after_the_last_tick_is_not_ahead_of_it_in_a_run_that_ends() -> None:
    state: dict[str, str] = {}
    live = Correlator(PLAN, "x", state)
    for item in (*cluster(until=60), tick(60 * MINUTE)):
        live.observe(item)
    told = [finding for finding in live.flush() if isinstance(finding, Verdict)]
    assert [alert.status for verdict in told for alert in verdict.alerts] == ["firing"]
    ending = Correlator(PLAN, "x", state, ticking=False)
    for item in (each for number in "23" for each in beats(number, 70, 180)):
        ending.observe(item)
    later = ending.flush()
    assert not [finding for finding in later if isinstance(finding, Verdict)], "it is as silent as it was"
    assert not [finding.why for finding in later if isinstance(finding, NotEvaluated) and finding.why == AHEAD]
