"""What is said does not depend on how the input was cut: batches, new processes and days without a word lose nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.correlate import Correlator
from engine.model.incidents import Alert, Verdict
from engine.model.rules import Clear, Plan
from tests.building import at, correlation, counting, match, plan, seen, signature, tick
from tests.unit.correlate.saying import in_batches

DAY = 86_400.0
LOOP = plan(signature("seen", severity="info"), counting("loop", ["seen"], 3, 60.0, clear=Clear(0, 60.0)))
TOPICS = plan(signature("seen", entity=("topic",), clear=Clear(0, 60.0)))

both = pytest.mark.parametrize("restart", [False, True], ids=["same process", "new processes"])


def finally_said(batches: Sequence[Sequence[object]], made: Plan, rule: str, restart: bool) -> list[Alert]:
    said = in_batches(batches, made, restart)
    return [alert for key in sorted(said) if key[1] == rule for alert in said[key]]


@both
def test_an_end_is_told_when_its_very_moment_is_reached(restart: bool) -> None:
    matches = [match("seen", s) for s in (0, 1, 2)]
    for until, status in ((91.9, "firing"), (92, "resolved")):
        (alert,) = finally_said([matches, [seen("a.log", until, until)]], LOOP, "loop", restart)
        assert alert.status == status


@both
def test_an_alert_that_waited_fires_when_its_time_has_passed_without_another_match(restart: bool) -> None:
    made = plan(signature("seen", for_s=60.0, clear=Clear(0, 300.0)))
    for until, status in ((89.9, "pending"), (90, "firing")):
        (alert,) = finally_said([[match("seen", 0)], [seen("a.log", until, until)]], made, "seen", restart)
        assert alert.status == status


@both
def test_an_alert_that_only_its_counter_signal_ends_goes_on_for_ever(restart: bool) -> None:
    made = plan(signature("seen", clear=Clear(in_s=0.0, rules=("fine",))), signature("fine", severity="info"))
    going_on: list[list[object]] = [[match("seen", 0)], [seen("a.log", 30 * DAY, 30 * DAY)]]
    assert [a.status for a in finally_said(going_on, made, "seen", restart)] == ["firing"]
    over = [*going_on, [match("fine", 31 * DAY), seen("a.log", 32 * DAY, 32 * DAY)]]
    assert [a.ends_at for a in finally_said(over, made, "seen", restart)] == [at(31 * DAY)]


@both
def test_an_end_is_taken_back_when_a_slower_source_turns_up(restart: bool) -> None:
    over: list[object] = [*(match("seen", s) for s in (0, 1, 2)), seen("a.log", 500, 500)]
    (alert,) = finally_said([over, [seen("b.log", 0, 20)]], LOOP, "loop", restart)
    assert alert.status == "firing"


@both
def test_what_a_slow_source_left_open_is_two_alerts_when_it_has_come_as_far_as_the_pause(restart: bool) -> None:
    twice: list[object] = [*(match("seen", s) for s in (0, 1, 2, 100, 101, 102)), seen("b.log", 0, 10)]
    for until, ends in ((91.9, [None]), (92, [at(62), None])):
        found = finally_said([twice, [seen("b.log", 0, until)]], LOOP, "loop", restart)
        assert [alert.ends_at for alert in found] == ends


@both
def test_a_late_match_changes_an_alert_that_is_over(restart: bool) -> None:
    over: list[object] = [*(match("seen", s) for s in (0, 1, 2)), seen("a.log", 500, 500)]
    (alert,) = finally_said([over, [match("seen", 30)]], LOOP, "loop", restart)
    assert (alert.count, alert.ends_at) == (4, at(90))


@both
def test_matches_that_come_one_by_one_are_counted_together(restart: bool) -> None:
    (alert,) = finally_said([[tick(0), match("seen", 0)], [match("seen", 1)], [match("seen", 2)]], LOOP, "loop", restart)
    assert alert.count == 3


@both
def test_an_alert_that_is_taken_back_is_no_longer_counted_by_others(restart: bool) -> None:
    unanswered = correlation("unanswered", "pair", ["open"], 60.0, expect=("done",), entity=("topic",), severity="info")
    base = [signature(name, severity="info") for name in ("open", "done")]
    made = plan(*base, unanswered, counting("outer", ["unanswered"], 2, 3600.0))
    opened: list[object] = [match("open", 0, topic=topic) for topic in "ab"]
    batches: list[list[object]] = [[*opened, seen("a.log", 200, 200)], [match("done", 30, topic="b")]]
    assert [alert.count for alert in finally_said(batches[:1], made, "outer", restart)] == [2]
    assert finally_said(batches, made, "outer", restart) == []


@both
def test_an_alert_of_which_nothing_is_known_any_longer_still_counts_for_others(restart: bool) -> None:
    inner = counting("inner", ["seen"], 1, 60.0, entity=("topic",), clear=Clear(0, 60.0))
    made = plan(signature("seen", severity="info"), inner, counting("outer", ["inner"], 2, 10 * DAY, clear=Clear(0, 10 * DAY)))
    first: list[object] = [tick(0), match("seen", 0, topic="a"), seen("a.log", 500, 500)]
    sweeps: list[object] = [tick(1.2 * DAY), match("seen", 1.2 * DAY, topic="b")]
    again: list[object] = [match("seen", 1.3 * DAY, topic="a")]
    (alert,) = finally_said([first, sweeps, again], made, "outer", restart)
    assert (alert.starts_at, alert.count) == (at(0), 3)


@both
def test_others_count_an_alert_once_it_has_lasted_with_what_it_said(restart: bool) -> None:
    lasting = counting("lasting", ["seen"], 1, 60.0, for_s=60.0, clear=Clear(0, 300.0))
    made = plan(signature("seen", severity="info"), lasting, counting("outer", ["lasting"], 1, 3600.0))
    first: list[object] = [match("seen", s, size=size) for s, size in ((0, 5), (1, 9), (2, 3))]
    assert finally_said([first, [seen("a.log", 0, 89.9)]], made, "outer", restart) == []
    (alert,) = finally_said([first, [seen("a.log", 0, 90)]], made, "outer", restart)
    assert (alert.starts_at, alert.count, alert.captures["size"].max) == (at(0), 1, 9)
    assert (alert.sources, alert.dated, alert.events) == (("a.log",), True, (first[0].event_id,))  # type: ignore[attr-defined]


def test_what_was_taken_back_stays_so_in_a_new_process() -> None:
    state: dict[str, str] = {}
    kept, taken = match("seen", 0), match("seen", 1)
    first = Correlator(LOOP, "default", state)
    first.observe(kept)
    first.observe(taken)
    first.flush()
    second = Correlator(LOOP, "default", state)
    second.retract(taken)
    second.flush()
    third = Correlator(LOOP, "default", state)
    third.observe(match("seen", 2))
    assert [f for f in third.flush() if isinstance(f, Verdict) and f.key[1] == "loop"] == []


@both
def test_who_is_forgotten_after_a_day_begins_anew_and_keeps_what_was_said(restart: bool) -> None:
    first: list[object] = [tick(0), match("seen", 0, topic="a")]
    over: list[object] = [seen("a.log", 500, 500)]
    sweeps: list[object] = [tick(DAY + 3600), match("seen", DAY, topic="b")]
    again: list[object] = [match("seen", DAY + 1, topic="a")]
    found = finally_said([first, over, sweeps, again], TOPICS, "seen", restart)
    told = [(dict(a.key[2])["topic"], a.status, a.starts_at) for a in found]
    assert told == [("a", "resolved", at(0)), ("a", "firing", at(DAY + 1)), ("b", "firing", at(DAY))]


@both
def test_nothing_is_forgotten_that_may_still_be_counted(restart: bool) -> None:
    two_days = counting("loop", ["seen"], 2, 2 * DAY, entity=("topic",))
    made = plan(signature("seen", entity=("topic",), severity="info"), two_days)
    first: list[object] = [tick(0), match("seen", 0, topic="a")]
    sweeps: list[object] = [tick(1.2 * DAY), match("seen", 1.2 * DAY, topic="b")]
    again: list[object] = [tick(1.5 * DAY), match("seen", 1.5 * DAY, topic="a")]
    (alert,) = finally_said([first, sweeps, again], made, "loop", restart)
    assert (alert.key[2], alert.count) == ((("topic", "a"),), 2)


def test_only_those_that_are_over_and_a_day_old_are_forgotten() -> None:
    state: dict[str, str] = {}
    batches: list[list[object]] = [
        [tick(0), match("seen", 0, topic="over"), seen("a.log", 500, 500)],
        [match("seen", 600, topic="goes on")],
        [tick(DAY - 3601), match("seen", 600, topic="not yet")],
        [tick(DAY), match("seen", 650, topic="new")],
    ]
    for batch in batches:
        correlator = Correlator(TOPICS, "default", state)
        for item in batch:
            correlator.observe(item)  # type: ignore[arg-type]
        correlator.flush()
    kept = [topic for topic in ("over", "goes on", "not yet", "new") if f'"{topic}"' in state["seen"]]
    assert kept == ["goes on", "not yet", "new"]
