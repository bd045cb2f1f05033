"""A broker that died without a word is told; a planned stop, a rotated file, a slow shipper and an early end are not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.correlate import Correlator
from engine.model.incidents import Evidence, NotEvaluated, Roster, Verdict
from engine.model.matches import ActivitySpan, Match
from engine.model.records import Progress
from engine.model.rules import Absence
from tests.building import absence, at, broker, match, plan, progress, seen, signature, tick
from tests.unit.correlate.brokers import DEADLINE, DIES, MINUTE, NOT_BACK, PLAN, beats, cluster, complaint, read, silent, young
from tests.unit.correlate.saying import alerts, in_batches


@pytest.mark.parametrize("size", [3, 5])
def test_a_broker_that_stops_printing_is_told_since_its_last_line(size: int) -> None:
    (alert,) = silent(cluster(size))
    assert alert.key == ("default", "silent", (("broker", "1"), ("cluster", "default")))
    assert (alert.status, alert.severity, alert.starts_at, alert.ends_at) == ("firing", "critical", at(DIES), None)
    assert (alert.last_seen, alert.count, dict(alert.labels)["broker"]) == (at(DEADLINE), 1, "1")
    assert alert.sources == ("1.log",)


def test_its_last_heartbeat_is_the_proof() -> None:
    correlator = Correlator(PLAN, "default")
    for item in cluster():
        correlator.observe(item)  # type: ignore[arg-type]
    found = correlator.flush()
    (verdict,) = (f for f in found if isinstance(f, Verdict) and f.key[1] == "silent")
    proofs = [f for f in found if isinstance(f, Evidence) and f.event_id in verdict.alerts[0].evidence]
    assert [(proof.at, proof.source_id) for proof in proofs] == [(at(DIES), "1.log")]


def test_two_others_must_go_on_past_the_deadline() -> None:
    first, second = DEADLINE / MINUTE + 0.01, DEADLINE / MINUTE
    one = [
        *beats("1", 0, 20),
        *beats("2", 0, first, step=first / 4),
        *beats("3", 0, second, step=second / 4),
        *read("1", "2", "3"),
    ]
    assert silent(one) == []
    assert len(silent([*one, seen("3.log", DEADLINE + 1, DEADLINE + 1)])) == 1


def test_only_one_other_that_goes_on_is_no_verdict() -> None:
    assert silent([*beats("1", 0, 20), *beats("2", 0, 60), *beats("3", 0, 20), *read("1", "2", "3")]) == []
    assert silent([*beats("1", 0, 20), *beats("2", 0, 60), *read("1", "2")]) == []


def test_logs_that_all_end_are_no_verdict() -> None:
    assert silent([*beats("1", 0, 20), *beats("2", 0, 20), *beats("3", 0, 20), *read("1", "2", "3")]) == []


def test_a_broker_never_armed_is_not_judged_but_listed() -> None:
    quiet = [seen("1.log", 0, 0), *beats("1", 0, 10), *beats("2", 0, 60), *beats("3", 0, 60), *read("1", "2", "3")]
    assert silent(quiet) == []
    correlator = Correlator(PLAN, "default")
    for item in quiet:
        correlator.observe(item)  # type: ignore[arg-type]
    assert [f.what for f in correlator.flush() if isinstance(f, NotEvaluated)] == ["", "broker 1"]


def test_a_heartbeat_of_another_version_arms_nothing() -> None:
    made = replace(PLAN, components=(broker(versions=(("<=", "2.6"),)),))
    version = match("component:broker/version", 0, "1.log", version="3.6.0")
    assert silent([*cluster(), version], made) == []
    assert len(silent([*cluster(), replace(version, captures={"version": "2.6.1"})], made)) == 1


def test_a_heartbeat_that_had_already_stopped_arms_nothing() -> None:
    chatter = [seen("1.log", s, s) for s in range(1200, 4000, 50)]
    later = [*beats("2", 0, 150), *beats("3", 0, 150)]
    assert silent([*beats("1", 0, 20), *chatter, *later, *read("1", "2", "3")]) == []


def test_a_source_that_is_not_read_to_its_end_is_not_judged() -> None:
    assert silent([*cluster(), progress("1.log", caught_up=False)]) == []
    assert silent([item for item in cluster() if not isinstance(item, Progress)]) == []


def test_a_silence_told_of_stays_while_its_source_has_something_unread() -> None:
    said = in_batches([cluster(), [progress("1.log", caught_up=False)]], PLAN, restart=True)
    assert [a.status for key, found in said.items() if key[1] == "silent" for a in found] == ["firing"]


def test_a_file_that_ends_where_it_was_rotated_is_no_verdict() -> None:
    border = (DIES + 600) / MINUTE
    assert silent([*cluster(), progress("1.log", closed=True)]) == []
    assert silent([*cluster(), progress("1.log", closed=True, covers_until=border * MINUTE)]) == []
    assert len(silent([*cluster(), progress("1.log", closed=True, covers_until=border * MINUTE + 1)])) == 1


def _of(source_id: str, item: Match | ActivitySpan) -> Match | ActivitySpan:
    return replace(item, source_id=source_id)


def test_a_file_of_a_broker_that_goes_on_in_another_one() -> None:
    rotated = [*cluster(), progress("1.log", closed=True, covers_until=3600.0)]
    following = [_of("1.log.2", item) for item in beats("1", 30, 60)]
    assert silent([*rotated, *following, progress("1.log.2")]) == []


def test_resumed_is_resolved_at_its_first_line() -> None:
    resumed = [*cluster(until=120.0), *beats("1", 50, 120)]
    (alert,) = silent(resumed)
    assert (alert.status, alert.starts_at, alert.ends_at, alert.last_seen) == ("resolved", at(DIES), at(3000), at(3000))


def test_a_time_of_which_nothing_was_collected_is_nobodys_silence() -> None:
    everybody = [item for n in "123" for item in [*beats(n, 0, 20), *beats(n, 60, 90)]]
    assert silent([*everybody, *read("1", "2", "3")]) == []


def test_another_collection_years_later_is_no_witness() -> None:
    years = 3 * 365 * 24 * 60.0
    ends = [*beats("1", 0, 20), *beats("2", 0, 30), *beats("3", 0, 30)]
    again = [item for n in "23" for item in beats(n, years, years + 60)] + beats("1", years + 5, years + 60)
    assert silent([*ends, *again, *read("1", "2", "3")]) == []


def test_late_lines_take_the_silence_back() -> None:
    correlator = Correlator(PLAN, "default")
    for item in cluster():
        correlator.observe(item)  # type: ignore[arg-type]
    assert [len(f.alerts) for f in correlator.flush() if isinstance(f, Verdict) and f.key[1] == "silent"] == [1]
    for item in beats("1", 30, 60):
        correlator.observe(item)
    assert [len(f.alerts) for f in correlator.flush() if isinstance(f, Verdict) and f.key[1] == "silent"] == [0]


def test_a_planned_stop_excuses() -> None:
    stopped = match("stopping", DIES + 119, "1.log", broker="1")
    assert silent([*cluster(until=290.0), stopped, complaint(DIES + 200)]) == []


def test_who_was_stopped_and_does_not_come_back_is_told_after_its_time() -> None:
    stopped = match("stopping", DIES + 119, "1.log", broker="1")
    assert silent([*cluster(until=200.0), stopped], NOT_BACK) == []
    (alert,) = silent([*cluster(until=290.0), stopped], NOT_BACK)
    assert (alert.severity, alert.why, alert.starts_at) == ("critical", "planned stop, not back", at(DIES + 119))
    assert silent(cluster(until=290.0), NOT_BACK) == [], "it was not stopped"
    (alert,) = silent([*cluster(until=400.0), stopped, *beats("1", 300, 400)], NOT_BACK)
    assert (alert.status, alert.ends_at) == ("resolved", at(300 * MINUTE))


def test_a_planned_stop_is_of_the_broker_that_prints_it() -> None:
    assert silent([*cluster(), match("stopping", DIES + 60, "1.log")]) == []
    assert len(silent([*cluster(), match("stopping", DIES + 60, "2.log")])) == 1


def test_a_stop_long_before_the_silence_excuses_nothing() -> None:
    assert len(silent([*cluster(), match("stopping", DIES - 121, "1.log", broker="1")])) == 1
    assert silent([*cluster(), match("stopping", DIES - 120, "1.log", broker="1")]) == []


def test_a_complaint_makes_it_certain_after_a_minute_without_arming() -> None:
    assert silent([*young(159.9, 999), complaint(100)]) == []
    (alert,) = silent([*young(160, 999), complaint(100)])
    assert (alert.severity, alert.starts_at, alert.last_seen) == ("high", at(30), at(160))


def test_complaints_that_go_on_stand_in_for_peers_that_are_quiet() -> None:
    first, last, sooner = (match("lost", s, "app.log", node=1) for s in (100, 160, 159.9))
    assert len(silent([*young(101, 999), first, last])) == 1
    assert silent([*young(101, 999), first, sooner]) == []
    assert silent([*young(101, 102), first, last]) == []  # whoever complains is ahead of every broker


def test_a_complaint_is_critical_after_three_minutes() -> None:
    assert [a.severity for a in silent([*young(279.9, 999), complaint(100)])] == ["high"]
    assert [a.severity for a in silent([*young(280, 999), complaint(100)])] == ["critical"]


def test_with_one_other_broker_its_time_is_enough() -> None:
    others = [*beats("2", 0, 0), *beats("2", 0.5, 0.5), seen("2.log", 0, 160)]
    assert len(silent([*beats("1", 0, 0), *beats("1", 0.5, 0.5), *others, complaint(100), *read("1", "2")])) == 1


def test_a_complaint_before_its_last_line_says_nothing() -> None:
    assert silent([*young(999, 999), complaint(29.9)]) == []
    assert len(silent([*young(999, 999), complaint(30)])) == 1


def test_a_complaint_taken_back_in_time_says_nothing() -> None:
    assert silent([*young(999, 999), complaint(100), complaint(160, "back")]) == []
    (alert,) = silent([*young(999, 999), complaint(100), complaint(160.001, "back")])
    assert (alert.status, alert.ends_at) == ("resolved", at(160.001))


def test_a_later_complaint_that_is_not_taken_back_counts() -> None:
    (alert,) = silent([*young(999, 999), complaint(100), complaint(130, "back"), complaint(200)])
    assert (alert.last_seen, alert.ends_at) == (at(260), None)


def test_a_complaint_about_another_broker_says_nothing() -> None:
    assert silent([*young(999, 999), match("lost", 100, "2.log", node=9)]) == []


def test_complaints_of_a_planned_stop_are_excused() -> None:
    assert silent([*young(999, 999), complaint(100), match("stopping", 40, "1.log", broker="1")]) == []


def test_an_unread_source_is_not_judged_by_complaints() -> None:
    assert silent([*young(999, 999), complaint(100), progress("1.log", caught_up=False)]) == []


def test_a_short_silence_with_a_complaint_ends_at_its_next_line() -> None:
    assert silent([*young(999, 999), complaint(100), seen("1.log", 159, 159)]) == []
    (alert,) = silent([*young(999, 999), complaint(100), seen("1.log", 160, 160)])
    assert (alert.status, alert.ends_at) == ("resolved", at(160))


def test_live_the_tick_stands_in_for_others_that_have_nothing_to_say() -> None:
    still = [*young(101, 101), complaint(100)]
    assert silent(still) == []
    assert len(silent([*still, tick(160)])) == 1
    assert silent([*still, tick(10**8)]) == []  # a replay of old logs


def test_a_clock_that_is_ahead_judges_nobody_and_is_listed() -> None:
    items = [*young(101, 101), complaint(100), tick(100), seen("3.log", 100, 401)]
    assert silent(items) == []
    correlator = Correlator(PLAN, "default")
    for item in items:
        correlator.observe(item)  # type: ignore[arg-type]
    said = [f.what for f in correlator.flush() if isinstance(f, NotEvaluated) and f.why.startswith("clock or zone?")]
    assert said == ["3.log"]
    assert len(silent([*items, seen("2.log", 101, 161)])) == 1  # the one that is left is enough for a complaint


def test_a_complaint_brings_a_silence_that_was_armed_forward() -> None:
    (alert,) = silent([*cluster(), match("lost", DIES + 33, "2.log", node=1)])
    assert (alert.severity, alert.last_seen, alert.why) == ("critical", at(DIES + 93), "others cannot reach it")


def test_labels_of_the_configuration_bind_without_a_naming_line() -> None:
    labelled = [
        replace(item, labels={**item.labels, "broker": item.source_id[0]}) if isinstance(item, ActivitySpan) else item
        for item in cluster()
        if not (isinstance(item, Match) and item.rule_id.endswith("/names"))
    ]
    assert [dict(a.labels)["broker"] for a in silent(labelled)] == ["1"]


def test_unbound_sources_take_no_part_and_are_listed() -> None:
    correlator = Correlator(PLAN, "default")
    for item in [*cluster(), seen("x.log", 0, 60)]:
        correlator.observe(item)  # type: ignore[arg-type]
    found = correlator.flush()
    assert [f.what for f in found if isinstance(f, NotEvaluated)] == ["", "x.log"]
    for second in (0, 1):
        correlator.observe(match("component:broker/names", second, "x.log", member="1"))
    assert [f.what for f in correlator.flush() if isinstance(f, NotEvaluated)] == [""]
    assert [f.members for f in found if isinstance(f, Roster)] == [{"broker": ("1", "2", "3")}]


def test_a_declared_broker_that_never_printed_is_told() -> None:
    declared = replace(PLAN, context={"brokers": "1,2,3,10"})
    steady = [*beats("1", 0, 30), *beats("2", 0, 30), *beats("3", 0, 30), *read("1", "2", "3")]
    (alert,) = silent(steady, declared)
    assert (dict(alert.labels)["broker"], alert.starts_at, alert.dated) == ("10", at(0), True)
    assert silent([*beats("1", 0, 20), *beats("2", 0, 20), *beats("3", 0, 20), *read("1", "2", "3")], declared) == []
    assert silent([*steady, progress("2.log", caught_up=False)], declared) == []


PAUSED = plan(
    signature("row", severity="info", entity=("topic",)), absence("gap", Absence("row", 3600.0), entity=("cluster", "topic"))
)


def rows(*seconds: float, topic: str = "t") -> list[Match]:
    return [match("row", s, topic=topic, offset=int(s)) for s in seconds]


def test_a_pause_between_two_matches_is_told_with_both_ends() -> None:
    (alert,) = alerts(rows(0, 3599, 7199), PAUSED, "gap")
    assert alert.key == ("default", "gap", (("cluster", "default"), ("topic", "t")))
    assert (alert.severity, alert.count, alert.dated, alert.why) == ("critical", 1, True, "seen again")
    assert (alert.status, alert.starts_at, alert.last_seen, alert.ends_at) == ("resolved", at(3599), at(7199), at(7199))
    assert (alert.captures["offset"].first, alert.captures["offset"].last) == (3599, 7199)
    assert len(alert.evidence) == 2


def test_shorter_pauses_open_ends_and_other_entities_are_none() -> None:
    assert alerts(rows(0, 3599.9, 7199), PAUSED, "gap") == []
    assert alerts([*rows(0), seen("a.log", 0, 99999)], PAUSED, "gap") == []
    assert alerts([*rows(0), *rows(7200, topic="u")], PAUSED, "gap") == []


def test_a_late_match_in_a_pause_takes_it_back() -> None:
    said = in_batches([rows(0, 7000), rows(3500)], PAUSED, restart=True)
    assert [key for key in said if key[1] == "gap"] == []


def test_the_ends_of_a_pause_may_be_batches_and_processes_apart() -> None:
    said = in_batches([rows(0), [], rows(7200), []], PAUSED, restart=True)
    assert [(alert.starts_at, alert.ends_at) for key in said if key[1] == "gap" for alert in said[key]] == [(at(0), at(7200))]


def test_lines_without_the_entity_are_of_the_one_that_their_source_named() -> None:
    by_broker = absence("gap", Absence("row", 3600.0), entity=("cluster", "broker"))
    paused = plan(signature("row", severity="info"), by_broker, components=(broker(),))
    lines = [match("row", 0, "1.log"), match("row", 3000, "2.log"), match("row", 4000, "1.log")]
    (alert,) = alerts([*beats("1", 0, 70), *beats("2", 0, 70), *lines], paused, "gap")
    assert (dict(alert.key[2])["broker"], alert.starts_at, alert.ends_at) == ("1", at(0), at(4000))


def test_lines_of_one_source_may_each_name_another_part_of_the_entity() -> None:
    two = plan(signature("row", severity="info"), absence("gap", Absence("row", 3600.0), entity=("topic", "group")))
    lines = [match("row", seconds, **part) for seconds in (0, 3600) for part in ({"topic": "t"}, {"group": "g"})]
    found = [dict(alert.key[2]) for alert in alerts(lines, two, "gap")]
    assert [(entity["topic"], entity["group"]) for entity in found] == [("t", "?a.log"), ("?a.log", "g")]


def test_the_heartbeats_of_all_members_around_the_silence_go_with_it() -> None:
    (alert,) = silent(cluster())
    rhythms = {run.labels["broker"]: (run.first, run.last, run.every_s) for run in alert.heartbeats}
    assert list(rhythms) == ["1", "2", "3"]
    assert rhythms["1"] == (at(0), at(DIES), 600.0)
    assert rhythms["2"] == (at(0), at(40 * MINUTE), 600.0), "until the silence was certain, and no longer"


def test_more_heartbeats_of_the_others_do_not_change_what_was_certain() -> None:
    (early,), (late,) = silent(cluster(until=60)), silent(cluster(until=600))
    assert early.heartbeats == late.heartbeats
