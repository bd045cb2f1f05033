"""Pairs: what opened has to be followed in time (docs/correlations.md)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.codec import dumps
from engine.correlate import Correlator
from engine.model.incidents import Alert, NotEvaluated, Verdict
from engine.model.matches import Match
from engine.model.rules import Clear, Correlation, Plan
from tests.building import at, broker, correlation, match, plan, progress, seen, signature, tick
from tests.unit.correlate.saying import alerts, in_batches

DAY = Clear(in_s=86400.0)
PAIR = correlation("pair", "pair", ["open"], 60.0, expect=("done", "failed"), entity=("topic",), clear=DAY)
PLAN = plan(*(signature(name, severity="info") for name in ("open", "done", "failed")), PAIR)
LATENESS = 30.0


def say(name: str, seconds: float, topic: str = "x", **captures: Any) -> Match:
    return match(name, seconds, topic=topic, **captures)


def over(*items: Any) -> list[Alert]:
    return alerts(items, PLAN, "pair")


def reached(seconds: float) -> object:
    """Everything up to `seconds` has been read."""
    return seen("a.log", seconds + LATENESS, seconds + LATENESS)


@pytest.mark.parametrize(
    ("items", "unanswered"),
    [
        pytest.param([say("done", 60)], 0, id="exactly-within-is-in-time"),
        pytest.param([say("failed", 5)], 0, id="any-of-what-is-expected"),
        pytest.param([say("done", 0)], 0, id="at-the-same-time"),
        pytest.param([say("done", -1)], 1, id="before-it-opened"),
        pytest.param([say("done", 5, topic="y")], 1, id="of-another-entity"),
        pytest.param([say("open", 30), say("done", 59)], 0, id="one-answer-for-all-that-are-open"),
        pytest.param([say("open", 1)], 2, id="two-unanswered-are-one-alert"),
        pytest.param([say("done", 50), say("done", 100)], 0, id="the-first-of-answers-that-go-on"),
        pytest.param([match("open", 0, dated=False)], 1, id="one-without-a-time-says-nothing"),
    ],
)
def test_what_answers(items: list[Match], unanswered: int) -> None:
    found = over(say("open", 0), *items, reached(200))
    assert [alert.count for alert in found] == ([unanswered] if unanswered else [])


def test_nobody_is_blamed_before_everything_up_to_the_deadline_has_been_read() -> None:
    assert over(say("open", 0), reached(59.9)) == []
    (alert,) = over(say("open", 0), reached(60))
    assert (alert.status, alert.starts_at, alert.ends_at) == ("firing", at(0), None)


both = pytest.mark.parametrize("restart", [False, True], ids=["same process", "new processes"])


def in_turn(restart: bool, *batches: list[Any], made: Plan = PLAN) -> list[Alert]:
    said = in_batches(batches, made, restart)
    return [alert for key in sorted(said) if key[1] == "pair" for alert in said[key]]


@both
def test_a_deadline_comes_without_another_match(restart: bool) -> None:
    assert in_turn(restart, [say("open", 0)], [reached(59.9)]) == []
    (alert,) = in_turn(restart, [say("open", 0)], [reached(60)])
    assert (alert.status, alert.dated) == ("firing", True)


@both
def test_who_is_never_answered_is_over_after_its_quiet_time(restart: bool) -> None:
    (alert,) = in_turn(restart, [say("open", 0)], [reached(60)], [reached(86_400)])
    assert (alert.status, alert.ends_at, alert.why) == ("resolved", at(86_400), "quiet, not confirmed")


@both
def test_one_that_has_to_last_fires_when_its_time_has_passed(restart: bool) -> None:
    lasting = plan(*PLAN.signatures, with_rule(for_s=300.0))
    for until, status in ((299.9, "pending"), (300, "firing")):
        (alert,) = in_turn(restart, [say("open", 0)], [reached(60)], [reached(until)], made=lasting)
        assert alert.status == status


def test_one_unanswered_is_enough_and_any_answer_ends_it_at_once() -> None:
    tolerant = plan(*PLAN.signatures, with_rule(clear=Clear(at_most=5, in_s=86_400.0, quiet_s=600.0)))
    found = alerts([say("open", 0), reached(100)], tolerant, "pair")
    assert [alert.status for alert in found] == ["firing"]
    found = alerts([say("open", 0), say("done", 90), reached(90)], tolerant, "pair")
    assert [(alert.status, alert.ends_at) for alert in found] == [("resolved", at(90))]


def with_rule(**changes: Any) -> Correlation:
    return correlation(
        "pair", "pair", ["open"], 60.0, expect=("done", "failed"), **{"entity": ("topic",), "clear": DAY, **changes}
    )


@both
def test_an_answer_may_be_read_long_before_its_opening(restart: bool) -> None:
    assert in_turn(restart, [say("done", 30)], [say("open", 0)], [reached(200)]) == []


@both
def test_an_answer_that_was_read_late_takes_back_what_an_earlier_batch_said(restart: bool) -> None:
    assert in_turn(restart, [say("open", 0)], [reached(200)], [say("done", 30)]) == []


@both
def test_a_slower_source_that_turns_up_takes_the_deadline_back(restart: bool) -> None:
    assert in_turn(restart, [say("open", 0), reached(200)], [seen("b.log", 0, 20)]) == []


@both
def test_an_opening_belongs_to_whom_its_source_turns_out_to_be(restart: bool) -> None:
    by_broker = plan(*PLAN.signatures, with_rule(entity=("broker",)), components=(broker(),))
    naming = [match("component:broker/names", s, member="7") for s in (1, 2)]
    found = in_turn(restart, [match("open", 0), reached(200)], naming, [], made=by_broker)
    assert [alert.key[2] for alert in found] == [(("broker", "7"),)]


def test_lines_without_the_entity_pair_up_with_those_of_their_own_source() -> None:
    two = plan(*PLAN.signatures, with_rule(entity=("topic", "group")))
    lines = [match("open", 0, source, **part) for source in ("a.log", "b.log") for part in ({"topic": "t"}, {"group": "g"})]
    answers = [match("done", 5, "a.log", topic="t"), match("done", 5, "b.log", group="g")]
    found = [dict(alert.key[2]) for alert in alerts([*lines, *answers, reached(200), seen("b.log", 0, 500)], two, "pair")]
    assert [(entity["topic"], entity["group"]) for entity in found] == [("t", "?b.log"), ("?a.log", "g")]


def test_the_cluster_is_the_one_that_the_source_belongs_to_whatever_its_lines_say() -> None:
    by_cluster = plan(*PLAN.signatures, with_rule(entity=("cluster",)))
    assert alerts([match("open", 0, cluster="one"), match("done", 5, cluster="other"), reached(200)], by_cluster, "pair") == []


@both
def test_an_opening_that_turned_out_to_be_another_line_is_taken_back(restart: bool) -> None:
    state: dict[str, str] = {}
    taken, kept = say("open", 0), say("open", 10)
    correlator = Correlator(PLAN, "default", state)
    for item in (taken, kept):
        correlator.observe(item)
    correlator.flush()
    correlator = Correlator(PLAN, "default", state) if restart else correlator
    correlator.retract(taken)
    correlator.flush()
    correlator = Correlator(PLAN, "default", state) if restart else correlator
    correlator.observe(reached(200))  # type: ignore[arg-type]
    (verdict,) = judged(correlator)
    assert [(alert.starts_at, alert.count) for alert in verdict.alerts] == [(at(10), 1)]


@both
def test_openings_that_are_more_than_can_be_kept_are_told(restart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.correlate.open_table.MAX_OPEN", 3)
    first = [say("open", 0), say("done", 0, topic="y")]
    second = [*(say("open", s) for s in range(100, 600, 100)), say("open", 100, topic="y")]
    state: dict[str, str] = {}
    correlator, said, told = Correlator(PLAN, "default", state), {}, []
    for batch in (first, second, [reached(1000)]):
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        found = correlator.flush()
        said |= {each.key[2]: each.alerts for each in found if isinstance(each, Verdict) and each.key[1] == "pair"}
        told += [each.why for each in found if isinstance(each, NotEvaluated) and each.what == "pair"]
        correlator = Correlator(PLAN, "default", state) if restart else correlator
    final = {entity[0][1]: [(alert.starts_at, alert.count) for alert in alerts] for entity, alerts in said.items()}
    assert final == {"x": [(at(300), 3)], "y": [(at(100), 1)]}
    assert told == ["3 matches were more than it can keep"]


def test_the_end_of_the_input_is_no_deadline() -> None:
    assert over(say("open", 0), progress("a.log", closed=True)) == []


def test_what_comes_too_late_ends_it() -> None:
    (alert,) = over(say("open", 0), say("done", 90), reached(200))
    assert (alert.status, alert.ends_at, alert.why) == ("resolved", at(90), "done seen")


def test_after_its_end_it_is_another_alert() -> None:
    found = over(say("open", 0), say("done", 90), say("open", 100), reached(400))
    assert [(each.starts_at, each.status) for each in found] == [(at(0), "resolved"), (at(100), "firing")]


def test_an_answer_that_was_read_late_takes_the_alert_back() -> None:
    correlator = Correlator(PLAN, "default", {})
    for item in (say("open", 0), reached(200)):
        correlator.observe(item)  # type: ignore[arg-type]
    assert [len(found.alerts) for found in judged(correlator)] == [1]
    correlator.observe(say("done", 30))
    assert [len(found.alerts) for found in judged(correlator)] == [0]


def judged(correlator: Correlator) -> list[Verdict]:
    return [each for each in correlator.flush() if isinstance(each, Verdict) and each.key[1] == "pair"]


@pytest.mark.parametrize("unanswered", [10, 1500, 2990])
def test_thousands_of_answered_pairs_hide_no_unanswered_one(unanswered: int) -> None:
    busy = [say(name, 200.0 * n + late, serial=n) for n in range(3000) for name, late in (("open", 0), ("done", 1))]
    missing = [each for each in busy if each.at != at(200.0 * unanswered + 1)]
    found = over(*missing, reached(700_000))
    assert [each.starts_at for each in found] == [at(200.0 * unanswered)]


def test_many_pairs_in_one_batch_hide_no_unanswered_one() -> None:
    correlator = Correlator(PLAN, "default", {})
    for n in range(6_000):
        correlator.observe(say("open", 200.0 * n, serial=n))
        if n != 1500:
            correlator.observe(say("done", 200.0 * n + 1, serial=n))
    found = correlator.flush()
    alerts: tuple[Alert, ...] = ()
    for verdict in found:
        alerts = verdict.over(alerts) if isinstance(verdict, Verdict) and verdict.key[1] == "pair" else alerts
    assert [each.starts_at for each in alerts] == [at(200.0 * 1500)]
    assert not [each for each in found if isinstance(each, NotEvaluated)]


def test_a_restart_forgets_no_opening() -> None:
    said = in_batches([[say("open", 0)], [say("open", 10, topic="y"), say("done", 12, topic="y")], [reached(500)]], PLAN, True)
    assert [key[2] for key in said if key[1] == "pair"] == [(("topic", "x"),)]


@both
def test_who_answered_and_is_not_heard_of_for_a_day_is_forgotten_and_what_was_said_of_it_stays(
    restart: bool,
) -> None:
    begin: list[object] = [say("open", 0), say("done", 90), reached(200), tick(300)]
    a_day_later: list[object] = [tick(90_000), say("done", 90_000, topic="y")]
    end: list[object] = [say("open", 100_000), reached(100_060)]
    state: dict[str, str] = {}
    correlator, said = Correlator(PLAN, "default", state), Verdict(("", "", ()), ())
    for batch in (begin, a_day_later, end):
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        for verdict in judged(correlator):
            said = Verdict(verdict.key, verdict.over(said.alerts))
        correlator = Correlator(PLAN, "default", state) if restart else correlator
    assert [(alert.starts_at, alert.status) for alert in said.alerts] == [(at(0), "resolved"), (at(100_000), "firing")]
    assert dumps(at(90)) not in state["pair"]


DAY_S = 86_400
ANOTHER = say("done", 5, topic="w")  # a rule looks at what it knows when something comes
WAITED_FOR = [say("open", 0, topic="x"), say("done", 1, topic="x")]


def known(restart: bool, *batches: list[Any]) -> set[str]:
    """Which of a few topics are in the state after these batches, each flushed."""
    state: dict[str, str] = {}
    correlator = Correlator(PLAN, "default", state)
    for batch in batches:
        for item in batch:
            correlator.observe(item)
        correlator.flush()
        correlator = Correlator(PLAN, "default", state) if restart else correlator
    return {topic for topic in ("x", "y", "z") if f'"{topic}"' in state["pair"]}


@both
@pytest.mark.parametrize(
    ("ticks", "forgotten"),
    [
        pytest.param([DAY_S - 1], False, id="a second less than a day"),
        pytest.param([DAY_S], True, id="a day"),
        pytest.param([DAY_S - 1, DAY_S + 3598], False, id="looked at again within the hour"),
        pytest.param([DAY_S - 1, DAY_S + 3599], True, id="looked at again after an hour"),
    ],
)
def test_what_waits_for_nothing_is_forgotten_after_a_day_of_ticks(restart: bool, ticks: list[int], forgotten: bool) -> None:
    later = [[tick(300 + each), ANOTHER] for each in ticks]
    assert known(restart, [*WAITED_FOR, reached(200), tick(300)], *later) == (set() if forgotten else {"x"})


@both
def test_what_had_something_within_the_day_or_waits_is_not_forgotten(restart: bool) -> None:
    begin = [*WAITED_FOR, say("done", 1, topic="y"), say("open", 190, topic="z"), reached(200), tick(300)]
    found = known(restart, begin, [tick(50_000), say("done", 2, topic="y")], [tick(300 + DAY_S), ANOTHER])
    assert found == {"y", "z"}


@both
def test_whatever_is_known_of_a_place_it_is_forgotten_whole(restart: bool) -> None:
    begin = [say("open", 0, topic="x"), say("done", 1, topic="y"), say("open", 0, topic="z"), say("done", 1, topic="z")]
    over = [[reached(200)], [reached(2 * DAY_S)], [tick(300), ANOTHER], [tick(300 + DAY_S), ANOTHER]]
    assert known(restart, begin, *over) == set()


@both
def test_the_last_that_was_said_of_what_is_forgotten_stays(restart: bool) -> None:
    over: list[list[Any]] = [[reached(60)], [reached(2 * DAY_S)], [tick(300), ANOTHER], [tick(300 + DAY_S), ANOTHER]]
    found = in_turn(restart, [say("open", 0)], *over, [say("open", 3 * DAY_S)], [reached(3 * DAY_S + 60)])
    assert [(alert.starts_at, alert.status) for alert in found] == [(at(0), "resolved"), (at(3 * DAY_S), "firing")]


@both
def test_what_was_never_seen_may_be_taken_back_and_what_was_may_be_forgotten(restart: bool) -> None:
    state: dict[str, str] = {}
    correlator = Correlator(PLAN, "default", state)
    for step in ([], [say("open", 0)], [tick(300), ANOTHER], [tick(300 + DAY_S), ANOTHER]):
        for item in step:
            correlator.observe(item)  # type: ignore[arg-type]
        correlator.retract(say("open", 0))
        assert judged(correlator) == []
        correlator = Correlator(PLAN, "default", state) if restart else correlator
    assert '"x"' not in state["pair"]
