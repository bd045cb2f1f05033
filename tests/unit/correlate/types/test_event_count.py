"""When a counting rule fires, for what, and when it is over; boundaries to the second."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.correlate import Correlator
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.incidents import Evidence, NotEvaluated, Verdict
from engine.model.rules import Clear, Escalation
from tests.building import START, at, at_least, broker, correlation, counting, match, plan, seen, signature
from tests.unit.correlate.saying import alerts, in_batches

SEEN = signature("seen")
LOOP = counting("loop", ["seen"], 3, 60.0, clear=Clear(0, 60.0))


def loop(*seconds: float, until: float = 0.0) -> list[tuple[object, ...]]:
    items = [match("seen", s) for s in seconds] + [seen("a.log", until, until)] * (until > 0)
    return [(a.status, a.starts_at - START, a.count, a.ends_at) for a in alerts(items, plan(SEEN, LOOP), "loop")]


def test_a_window_leaves_out_what_is_exactly_its_length_ago() -> None:
    assert loop(0, 30, 60) == []
    assert loop(0, 30, 59.999) == [("firing", timedelta(0), 3, None)]


def test_an_alert_counts_every_occurrence_of_its_episode() -> None:
    assert loop(0, 1, 2, 50, 100) == [("firing", timedelta(0), 5, None)]


def test_the_end_is_judged_when_nothing_more_can_come() -> None:
    assert loop(0, 1, 2, until=91.9) == [("firing", timedelta(0), 3, None)]
    assert loop(0, 1, 2, until=92) == [("resolved", timedelta(0), 3, at(62))]


def test_an_occurrence_at_the_very_end_goes_on_with_the_episode() -> None:
    assert loop(0, 1, 2, 62, until=151) == [("firing", timedelta(0), 4, None)]
    assert loop(0, 1, 2, 62.001, until=152) == [("resolved", timedelta(0), 3, at(62))]


def test_a_rule_fires_again_after_its_end() -> None:
    assert loop(0, 1, 2, 100, 101, 102, until=300) == [
        ("resolved", timedelta(0), 3, at(62)),
        ("resolved", timedelta(seconds=100), 3, at(162)),
    ]


def test_clear_at_most_some() -> None:
    rule = counting("loop", ["seen"], 3, 60.0, clear=Clear(1, 60.0))
    items = [*(match("seen", s) for s in (0, 10, 20, 60)), seen("a.log", 300, 300)]
    (alert,) = alerts(items, plan(SEEN, rule), "loop")
    assert alert.ends_at == at(80)  # 20 leaves the window then, and only 60 is left in it


def test_with_some_allowed_the_end_may_come_before_all_have_left() -> None:
    rule = counting("loop", ["seen"], 3, 60.0, clear=Clear(1, 60.0))
    for following, told in ((70, [(4, at(80))]), (70.001, [(3, at(70))])):
        items = [*(match("seen", s) for s in (0, 10, 20, following)), seen("a.log", 300, 300)]
        assert [(a.count, a.ends_at) for a in alerts(items, plan(SEEN, rule), "loop")] == told


def test_a_signature_is_an_alert_by_itself() -> None:
    items = [match("seen", 5), match("seen", 6)]
    (alert,) = alerts(items, plan(SEEN), "seen")
    assert (alert.status, alert.severity, alert.starts_at, alert.last_seen, alert.count) == ("firing", "high", at(5), at(6), 2)
    assert alert.key == ("default", "seen", (("cluster", "default"),))


def test_entities_are_apart() -> None:
    one = signature("seen", entity=("cluster", "topic"))
    items = [match("seen", 0, topic="a"), match("seen", 1, topic="b"), match("seen", 2, topic="a")]
    assert [(dict(a.key[2])["topic"], a.count) for a in alerts(items, plan(one), "seen")] == [("a", 2), ("b", 1)]


def test_an_entity_is_read_from_captures_then_labels() -> None:
    one = signature("seen", entity={"cluster": "cluster", "broker": "node"})
    items = [match("seen", 0, node=1, labels={"node": "9"}), match("seen", 1, labels={"node": "2"})]
    assert [dict(a.key[2])["broker"] for a in alerts(items, plan(one), "seen")] == ["1", "2"]


def test_the_cluster_is_the_one_that_the_source_belongs_to_whatever_its_lines_say() -> None:
    (alert,) = alerts([match("seen", 0, cluster="Zb4xT9oYQ2")], plan(SEEN), "seen")
    assert alert.key[2] == (("cluster", "default"),)


def test_a_missing_value_never_joins_two_sources() -> None:
    one = signature("seen", entity=("cluster", "topic"))
    items = [match("seen", 0), match("seen", 1, "b.log")]
    found = alerts(items, plan(one), "seen")
    assert [dict(a.key[2])["topic"] for a in found] == ["?a.log", "?b.log"]
    assert all("topic" not in a.labels for a in found)


def test_a_binding_that_becomes_known_later_gives_its_alerts_their_entity() -> None:
    made = plan(signature("seen", entity=("cluster", "broker")), components=(broker(),))
    naming = [match("component:broker/names", s, member="7") for s in (1, 2)]
    said = in_batches([[match("seen", 0)], naming, [match("seen", 9)]], made, restart=True)
    assert [(key[2], [a.count for a in found]) for key, found in said.items()] == [
        ((("broker", "7"), ("cluster", "default")), [2])
    ]


def test_the_old_entity_is_taken_back_when_a_binding_becomes_known() -> None:
    made = plan(signature("seen", entity=("cluster", "broker")), components=(broker(),))
    correlator = Correlator(made, "default")
    correlator.observe(match("seen", 0))
    correlator.flush()
    for second in (1, 2):
        correlator.observe(match("component:broker/names", second, member="7"))
    verdicts = [f for f in correlator.flush() if isinstance(f, Verdict)]
    assert [(dict(v.key[2])["broker"], len(v.alerts)) for v in verdicts] == [("7", 1), ("?a.log", 0)]


def test_collapse_counts_what_lies_together_as_one() -> None:
    one = signature("seen", collapse_s=30.0)
    (alert,) = alerts([match("seen", s) for s in (0, 10, 30, 30.5, 61)], plan(one), "seen")
    assert alert.count == 3  # 0 to 30, 30.5, 61


def test_of_what_is_counted_as_one_nothing_is_lost() -> None:
    every = [match("seen", s, size=s) for s in range(10)]
    (alert,) = alerts(every, plan(signature("seen", collapse_s=30.0)), "seen")
    assert (alert.count, alert.last_seen, alert.captures["size"].sum) == (1, at(9), 45)
    assert alert.events == tuple(each.event_id for each in every)


def test_collapse_of_a_signature_holds_for_a_correlation_of_it() -> None:
    made = plan(signature("seen", collapse_s=30.0), counting("loop", ["seen"], 2, 60.0))
    assert alerts([match("seen", s) for s in (0, 1, 2)], made, "loop") == []
    assert [a.count for a in alerts([match("seen", s) for s in (0, 1, 40)], made, "loop")] == [2]


def test_distinct_counts_each_tuple_once_and_the_earliest() -> None:
    one = signature("seen", distinct=("partition", "offset"))
    again = [match("seen", s, partition=0, offset=o) for s, o in ((9, 7), (0, 7), (3, 8))]
    (alert,) = alerts(again, plan(one), "seen")
    assert (alert.count, alert.starts_at, alert.last_seen) == (2, at(0), at(3))


def test_distinct_holds_for_all_sources_together() -> None:
    one = signature("seen", distinct=("epoch",), versions=((">=", "2.7"),))  # whose matches are kept by source
    alike = [match("seen", s, source, epoch=e) for s, source, e in ((9, "1.log", 7), (0, "2.log", 7), (3, "3.log", 8))]
    (alert,) = alerts(alike, plan(one), "seen")
    assert (alert.count, alert.starts_at, alert.last_seen) == (2, at(0), at(3))


def test_distinct_with_a_missing_capture_counts_the_event() -> None:
    one = signature("seen", distinct=("partition", "offset"))
    (alert,) = alerts([match("seen", 0, partition=0), match("seen", 1, partition=0)], plan(one), "seen")
    assert alert.count == 2


def test_distinct_holds_for_a_storm() -> None:
    one = signature("seen", distinct=("epoch",))
    (alert,) = alerts([match("seen", n, epoch=n % 10, serial=n) for n in range(1000)], plan(one), "seen")
    assert (alert.count, alert.last_seen) == (10, at(9))


def test_a_redelivered_event_is_one() -> None:
    (alert,) = alerts([match("seen", 0), match("seen", 0)], plan(SEEN), "seen")
    assert alert.count == 1


def test_a_counter_signal_ends_an_alert_after_quiet() -> None:
    one = signature("seen", clear=Clear(0, 3600.0, ("fine",), 60.0))
    made = plan(one, signature("fine", severity="info"))
    items = [match("seen", 0), match("seen", 10), match("fine", 20)]
    (open_,) = alerts([*items, seen("a.log", 99.9, 99.9)], made, "seen")
    assert open_.status == "firing"
    (over,) = alerts([*items, seen("a.log", 100, 100)], made, "seen")
    assert (over.status, over.ends_at, over.why) == ("resolved", at(20), "fine seen")


def test_a_counter_signal_before_the_last_occurrence_ends_nothing() -> None:
    one = signature("seen", clear=Clear(0, 3600.0, ("fine",), 60.0))
    items = [match("seen", 0), match("fine", 5), match("seen", 60), seen("a.log", 999, 999)]
    (alert,) = alerts(items, plan(one, signature("fine", severity="info")), "seen")
    assert alert.ends_at is None


def test_a_counter_signal_is_of_the_same_entity() -> None:
    one = signature("seen", entity=("cluster", "topic"), clear=Clear(0, 3600.0, ("fine",), 0.0))
    made = plan(one, signature("fine", severity="info", entity=("cluster", "topic")))
    items = [match("seen", 0, topic="a"), match("seen", 0, topic="b"), match("fine", 5, topic="b"), seen("a.log", 99, 99)]
    assert [a.status for a in alerts(items, made, "seen")] == ["firing", "resolved"]


def test_a_counter_signal_ends_a_count_of_values_whichever_value_it_bears() -> None:
    clear = Clear(0, 3600.0, ("fine",), 0.0)
    two = correlation("two", "value_count", ["seen"], 60.0, condition=at_least(2), field="topic", clear=clear)
    made = plan(signature("seen", severity="info"), signature("fine", severity="info"), two)
    items = [match("seen", 0, topic="a"), match("seen", 1, topic="b"), match("fine", 5, topic="a"), seen("a.log", 99, 99)]
    assert [a.ends_at for a in alerts(items, made, "two")] == [at(5)]


def test_for_waits_and_forgets_what_did_not_last() -> None:
    one = signature("seen", for_s=60.0, clear=Clear(0, 30.0))
    assert [a.status for a in alerts([match("seen", 0)], plan(one), "seen")] == ["pending"]
    assert [a.status for a in alerts([match("seen", s) for s in (0, 30, 60)], plan(one), "seen")] == ["firing"]
    assert alerts([match("seen", 0), seen("a.log", 60, 60)], plan(one), "seen") == []


def test_escalation_by_count_time_and_captures() -> None:
    steps = (
        Escalation("critical", Binary(">=", NameExpression("count"), Literal(3))),
        Escalation("medium", Binary(">", NameExpression("lasting"), Literal(50))),
        Escalation("critical", Binary(">", NameExpression("size"), Literal(10))),
    )
    one = plan(signature("seen", severity="low", escalate=steps))
    assert [a.severity for a in alerts([match("seen", 0)], one, "seen")] == ["low"]
    assert [a.severity for a in alerts([match("seen", s) for s in (0, 50.5)], one, "seen")] == ["medium"]
    assert [a.severity for a in alerts([match("seen", s) for s in (0, 1, 2)], one, "seen")] == ["critical"]
    assert [a.severity for a in alerts([match("seen", 0, size=11), match("seen", 1, size=3)], one, "seen")] == ["critical"]


def test_undated_matches_are_placed_at_the_last_dated_one() -> None:
    items = [match("seen", 10), match("seen", 99999, dated=False), match("seen", 20)]
    (alert,) = alerts(items, plan(SEEN), "seen")
    assert (alert.count, alert.starts_at, alert.last_seen, alert.dated) == (3, at(10), at(20), True)


@pytest.mark.parametrize(("collapse_s", "most"), [(0.0, 501), (30.0, 20)])
def test_a_storm_of_undated_matches_is_placed_at_the_last_dated_one(collapse_s: float, most: int) -> None:
    storm = [match("seen", 9000 + n, dated=False, size=n) for n in range(500)]
    (alert,) = alerts([match("seen", 10), *storm], plan(signature("seen", collapse_s=collapse_s)), "seen")
    assert (alert.starts_at, alert.last_seen, alert.captures["size"].max) == (at(10), at(10), 499)
    assert 2 <= alert.count <= most
    assert collapse_s or alert.count == most
    assert set(alert.events) <= {match("seen", 10).event_id, *(each.event_id for each in storm)}


def test_undated_matches_alone_are_placed_at_ingest_time() -> None:
    (alert,) = alerts([match("seen", 500, dated=False)], plan(SEEN), "seen")
    assert (alert.starts_at, alert.dated) == (at(500), False)


def test_a_rule_of_other_versions_does_not_count_and_is_listed() -> None:
    one = signature("seen", component="broker", versions=(("<=", "2.6"),))
    made = plan(one, components=(broker(),))
    version = match("component:broker/version", 0, version="2.8.1")
    for order in ([match("seen", 1), version], [version, match("seen", 1)]):
        correlator = Correlator(made, "default")
        for item in order:
            correlator.observe(item)
        said = correlator.flush()
        assert not [f for f in said if isinstance(f, Verdict)]
        assert [f.what for f in said if isinstance(f, NotEvaluated)] == ["", "seen"]


def test_the_version_that_ran_at_the_time_decides() -> None:
    made = plan(signature("seen", component="broker", versions=(("<=", "2.6"),)), components=(broker(),))
    versions = [match("component:broker/version", s, version=v) for s, v in ((0, "2.6.0"), (100, "3.0"))]
    (alert,) = alerts([*versions, match("seen", 50), match("seen", 150)], made, "seen")
    assert alert.last_seen == at(50)


@pytest.mark.parametrize("bounded", ["signature", "correlation"])
def test_a_correlation_leaves_out_matches_of_other_versions_and_says_whose(bounded: str) -> None:
    only = {"component": "broker", "versions": (("<=", "2.6"),)}
    hit = signature("seen", severity="info", **(only if bounded == "signature" else {}))
    loop = counting("loop", ["seen"], 2, 60.0, **(only if bounded == "correlation" else {}))
    versions = [match("component:broker/version", 0, f"{v}.log", version=v) for v in ("2.6", "3.0")]
    correlator = Correlator(plan(hit, loop, components=(broker(),)), "default")
    for item in (*versions, match("seen", 1, "2.6.log"), match("seen", 2, "3.0.log")):
        correlator.observe(item)
    said = correlator.flush()
    assert not [f for f in said if isinstance(f, Verdict) and f.key[1] == "loop"]
    assert NotEvaluated("default", "seen", "is for <=2.6; 3.0.log runs 3.0") in said


def test_what_was_left_out_counts_when_an_older_version_turns_out_to_have_run() -> None:
    one = signature("seen", component="broker", versions=(("<=", "2.6"),))
    correlator = Correlator(plan(one, components=(broker(),)), "default")
    correlator.observe(match("component:broker/version", 100, version="3.0"))
    correlator.observe(match("seen", 50))
    assert [f.what for f in correlator.flush() if isinstance(f, NotEvaluated)] == ["", "seen"]
    correlator.observe(match("component:broker/version", 0, version="2.6"))
    said = correlator.flush()
    assert [len(f.alerts) for f in said if isinstance(f, Verdict)] == [1]
    assert [f.what for f in said if isinstance(f, NotEvaluated)] == [""]


@pytest.mark.parametrize("versions", [(), ((">=", "2.8"),)], ids=["one series", "a series for each source"])
@pytest.mark.parametrize("collapse_s", [0.0, 1.0, 5.0])
def test_what_is_long_over_stays_as_it_was(collapse_s: float, versions: tuple[tuple[str, str], ...]) -> None:
    """Old matches are kept as sums only; what their seconds show must not look longer, larger or worse for that."""
    grave = (Escalation("critical", Binary(">", NameExpression("lasting"), Literal(30))),)
    one = signature("seen", collapse_s=collapse_s, versions=versions, escalate=grave, clear=Clear(rules=("fine",)))
    made = plan(one, signature("fine", severity="info"))
    early = [match("seen", s / 10, f"{name}.log") for s in range(0, 60, 3) for name in "ab"]
    early += [match("fine", 7), *(match("seen", 40 + s / 10, f"{name}.log") for s in range(0, 50, 3) for name in "ab")]
    early += [match("fine", 50), seen("a.log", 3000, 3000), seen("b.log", 3000, 3000)]
    late = [match("seen", 4000 + s / 3, f"{name}.log") for s in range(500) for name in "ab"]
    before, after = alerts(early, made, "seen"), alerts([*early, *late], made, "seen")[:2]
    assert [(a.status, a.severity, a.ends_at) for a in before] == [("resolved", "high", at(7)), ("resolved", "high", at(50))]
    assert [(a.status, a.severity, a.ends_at) for a in after] == [(a.status, a.severity, a.ends_at) for a in before]
    assert all(then.count <= first.count for first, then in zip(before, after, strict=True))


def test_labels_are_what_all_events_agree_on() -> None:
    one = signature("seen", entity=("cluster", "topic"))
    items = [
        match("seen", 0, topic="t", labels={"host": "a", "rack": "r", "timezone": "UTC"}),
        match("seen", 1, "b.log", topic="t", labels={"host": "b", "rack": "r"}),
    ]
    (alert,) = alerts(items, plan(one), "seen")
    assert dict(alert.labels) == {"cluster": "default", "rack": "r", "topic": "t"}
    assert alert.sources == ("a.log", "b.log")


def test_captures_keep_distinct_values_and_figures_of_numbers() -> None:
    items = [match("seen", s, size=n, name=str(n % 2)) for s, n in ((2, 5), (0, 3), (1, 9))]
    (alert,) = alerts(items, plan(SEEN), "seen")
    size = alert.captures["size"]
    assert (size.values, size.first, size.last, size.min, size.max, size.sum) == ((3, 9, 5), 3, 5, 3, 9, 17)
    assert (alert.captures["name"].values, alert.captures["name"].max) == (("1",), None)


def test_evidence_is_the_first_and_the_last_three_events_and_comes_before_the_alert() -> None:
    correlator = Correlator(plan(SEEN), "default")
    items = [match("seen", s) for s in range(80)]
    for item in items:
        correlator.observe(item)
    found = correlator.flush()
    (verdict,) = (f for f in found if isinstance(f, Verdict))
    ids = [item.event_id for item in items]
    assert list(verdict.alerts[0].evidence) == ids[:3] + ids[-3:]
    assert list(verdict.alerts[0].events) == ids[:25] + ids[-25:]
    assert {f.event_id for f in found if isinstance(f, Evidence)} == set(verdict.alerts[0].evidence)
    assert found.index(verdict) == len(found) - 1


def test_a_flush_says_only_what_changed() -> None:
    correlator = Correlator(plan(SEEN), "default")
    correlator.observe(match("seen", 0))
    assert len([f for f in correlator.flush() if isinstance(f, Verdict)]) == 1
    correlator.observe(match("seen", 0))
    assert correlator.flush() == []
    assert correlator.flush() == []


def test_a_retracted_match_takes_its_alert_back() -> None:
    correlator = Correlator(plan(SEEN), "default")
    first, second = match("seen", 0), match("seen", 5)
    correlator.observe(first)
    correlator.observe(second)
    correlator.flush()
    correlator.retract(second)
    assert [[a.count for a in f.alerts] for f in correlator.flush() if isinstance(f, Verdict)] == [[1]]
    correlator.retract(first)
    assert [f.alerts for f in correlator.flush() if isinstance(f, Verdict)] == [()]


def test_an_event_that_goes_on_is_shown_whole() -> None:
    correlator = Correlator(plan(SEEN), "default")
    cut = match("seen", 0)
    correlator.observe(cut)
    correlator.flush()
    correlator.retract(cut)
    correlator.observe(replace(cut, text="seen\nCaused by: what was read later"))
    found = correlator.flush()
    assert [f.text for f in found if isinstance(f, Evidence)] == ["seen\nCaused by: what was read later"]
    assert [len(f.alerts) for f in found if isinstance(f, Verdict)] == [1]
    assert correlator.flush() == []


@pytest.mark.parametrize("late", [0.0, 30.0])
def test_a_late_match_is_placed_at_its_own_time(late: float) -> None:
    correlator = Correlator(plan(SEEN, LOOP), "default")
    for second in (1, 59, 200):
        correlator.observe(match("seen", second))
    assert not [f for f in correlator.flush() if isinstance(f, Verdict) and f.key[1] == "loop"]
    correlator.observe(match("seen", late))
    (verdict,) = (f for f in correlator.flush() if isinstance(f, Verdict) and f.key[1] == "loop")
    assert [a.starts_at for a in verdict.alerts] == [at(min(late, 1))]
