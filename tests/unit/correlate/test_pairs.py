"""Pairs: what opened has to be followed in time (docs/correlations.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from engine.correlate import Correlator
from engine.model.incidents import Alert, Blind, Verdict
from engine.model.matches import Match
from engine.model.rules import Clear
from tests.building import at, correlation, match, plan, progress, seen, signature, tick
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
    ],
)
def test_what_answers(items: list[Match], unanswered: int) -> None:
    found = over(say("open", 0), *items, reached(200))
    assert [alert.count for alert in found] == ([unanswered] if unanswered else [])


def test_nobody_is_blamed_before_everything_up_to_the_deadline_has_been_read() -> None:
    assert over(say("open", 0), reached(59.9)) == []
    (alert,) = over(say("open", 0), reached(60))
    assert (alert.status, alert.starts_at, alert.ends_at) == ("firing", at(0), None)


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
    assert not [each for each in found if isinstance(each, Blind)]


def test_a_restart_forgets_no_opening() -> None:
    said = in_batches([[say("open", 0)], [say("open", 10, topic="y"), say("done", 12, topic="y")], [reached(500)]], PLAN, True)
    assert [key[2] for key in said if key[1] == "pair"] == [(("topic", "x"),)]


def test_who_answered_and_is_not_heard_of_for_a_day_is_forgotten_and_what_was_said_of_it_stays() -> None:
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
    assert [(alert.starts_at, alert.status) for alert in said.alerts] == [(at(0), "resolved"), (at(100_000), "firing")]
    assert state["pair"].count(written(at(90))) == 0


def written(at: datetime) -> str:
    return at.isoformat()
