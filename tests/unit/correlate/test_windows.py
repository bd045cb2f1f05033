"""Correlations over a window: what is in, what is out, and what one alert is (docs/correlations.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.model.incidents import Alert
from engine.model.matches import Match
from engine.model.rules import Clear, Correlation, Plan
from tests.building import at, at_least, correlation, counting, match, plan, seen, signature
from tests.unit.correlate.saying import alerts

BASE = tuple(signature(name, severity="info") for name in ("a", "b", "c"))


def over(rule: Correlation, *items: Any) -> list[Alert]:
    return alerts(items, rules(rule), rule.rule.id)


def rules(*more: Correlation) -> Plan:
    return plan(*BASE, *more)


def one(name: str, seconds: float, **captures: Any) -> Match:
    return match(name, seconds, **captures)


FIRES = counting("many", ["a"], 2, 60.0)
FOUR = counting("four", ["a"], 4, 60.0)
ORDER = correlation("order", "temporal_ordered", ["a", "b", "c"], 60.0)
VALUES = correlation("values", "value_count", ["a"], 60.0, condition=at_least(3), field="topic")
SOURCES = correlation("sources", "value_count", ["a"], 60.0, condition=at_least(2), field="source")


@pytest.mark.parametrize(
    ("rule", "items", "fires"),
    [
        pytest.param(FIRES, [one("a", 0), one("a", 59.999)], True, id="count-just-inside"),
        pytest.param(FIRES, [one("a", 0), one("a", 60)], False, id="count-exactly-the-timespan-back-is-out"),
        pytest.param(FOUR, [one("a", s) for s in (0, 30, 59, 61, 62)], True, id="count-goes-on-when-one-has-left"),
        pytest.param(FOUR, [one("a", s) for s in (0, 30, 59, 61)], False, id="count-is-less-when-one-has-left"),
        pytest.param(ORDER, [one("a", 0), one("b", 1), one("c", 59)], True, id="order"),
        pytest.param(ORDER, [one("b", 0), one("a", 1), one("c", 2)], False, id="other-order"),
        pytest.param(ORDER, [one("a", 0), one("b", 1), one("c", 60)], False, id="order-60s-is-out"),
        pytest.param(ORDER, [one("a", 5), one("b", 5), one("c", 5)], True, id="equal-times-are-in-order"),
        pytest.param(ORDER, [one("a", 0), one("b", 1), one("a", 2), one("c", 61)], False, id="a-later-begin-does-not-help"),
        pytest.param(ORDER, [one("a", 0), one("a", 50), one("b", 55), one("c", 70)], True, id="the-tightest-begin-counts"),
        pytest.param(VALUES, [one("a", n, topic=t) for n, t in enumerate("xyz")], True, id="three-values"),
        pytest.param(VALUES, [one("a", n, topic=t) for n, t in enumerate("xyx")], False, id="two-values"),
        pytest.param(VALUES, [one("a", n, topic="x") for n in range(9)] + [one("a", 20)], False, id="no-value-is-none"),
        pytest.param(
            VALUES,
            [one("a", s, topic=t) for s, t in zip((0, 30, 61, 62), "xxyz", strict=True)],
            True,
            id="a-value-stays-while-one-of-its-lines-is-in",
        ),
        pytest.param(VALUES, [one("a", n * 30, topic=t) for n, t in enumerate("xyz")], False, id="values-60s-is-out"),
        pytest.param(SOURCES, [one("a", 0, source="x.log"), one("a", 1, source="y.log")], True, id="two-values-of-a-label"),
        pytest.param(SOURCES, [one("a", 0, source="x.log"), one("a", 1, source="x.log")], False, id="one-value-of-a-label"),
    ],
)
def test_when_it_fires(rule: Correlation, items: Sequence[Match], fires: bool) -> None:
    assert bool(over(rule, *items)) is fires


def test_one_event_stands_for_one_place_in_an_order() -> None:
    line, other = one("a", 0), one("b", 0)
    same = Match("b", line.event_id, line.source_id, 1, line.at, True)
    order = correlation("order", "temporal_ordered", ["a", "b"], 60.0)
    assert over(order, line, same) == []
    assert over(order, line, same, other) != []


def test_an_alert_is_an_episode_from_its_first_line_to_a_quiet_timespan_after_its_last() -> None:
    items = [one("a", 0), one("b", 10), one("c", 20), one("a", 70), one("c", 200), seen("a.log", 500, 500)]
    (alert,) = over(correlation("all", "temporal_ordered", "abc", 60.0, clear=Clear(in_s=60.0)), *items)
    assert (alert.starts_at, alert.last_seen, alert.ends_at, alert.count) == (at(0), at(70), at(130), 4)


def test_a_line_that_comes_late_stands_at_its_own_time() -> None:
    on_time = [one("a", 0), one("b", 10), one("c", 20), seen("a.log", 4000, 4000)]
    late = [one("c", 20), seen("a.log", 4000, 4000), one("b", 10), one("a", 0)]
    assert over(ORDER, *on_time) == over(ORDER, *late) != []


def test_entities_are_apart() -> None:
    by_group = counting("many", ["a"], 2, 60.0, entity=("group",))
    items = [one("a", n, group=g, generation=v) for n, (g, v) in enumerate((("x", 1), ("y", 9), ("y", 13)))]
    (alert,) = over(by_group, *items)
    assert alert.labels["group"] == "y"
    assert (alert.captures["generation"].min, alert.captures["generation"].max) == (9, 13)


def test_a_storm_of_one_value_stays_one_value_and_many_values_stay_many() -> None:
    storm = [one("a", n / 10, topic="x", serial=n) for n in range(2000)]
    assert over(VALUES, *storm) == []
    hundred = correlation("values", "value_count", ["a"], 600.0, condition=at_least(100), field="topic")
    many = [one("a", n / 10, topic=f"t{n % 100}", serial=n) for n in range(2000)]
    (alert,) = over(hundred, *many)
    assert alert.count == 2000


INNER = counting("inner", ["a"], 2, 60.0, entity=("topic",), clear=Clear(in_s=60.0), severity="info")
OUTER = counting("outer", ["inner"], 2, 600.0, entity=("cluster",))


def burst(start: float, topic: str) -> list[Match]:
    return [one("a", start, topic=topic), one("a", start + 1, topic=topic)]


def test_a_correlation_over_a_correlation_counts_its_alerts() -> None:
    together = rules(INNER, OUTER)
    assert alerts([*burst(0, "x"), one("a", 100, topic="y")], together, "outer") == []
    (alert,) = alerts([*burst(0, "x"), *burst(100, "y")], together, "outer")
    assert (alert.starts_at, alert.count) == (at(0), 2)
    assert alert.captures["topic"].values == ("x", "y")
    assert alert.evidence == tuple(match.event_id for match in (burst(0, "x")[0], burst(100, "y")[0]))


def test_an_alert_that_is_over_and_comes_again_counts_again() -> None:
    (alert,) = alerts([*burst(0, "x"), *burst(300, "x")], rules(INNER, OUTER), "outer")
    assert alert.count == 2


def test_two_alerts_that_late_lines_make_one_count_once() -> None:
    bridge = [one("a", s, topic="x") for s in range(50, 300, 50)]
    assert alerts([*burst(0, "x"), *burst(300, "x"), *bridge], rules(INNER, OUTER), "outer") == []


def test_the_order_of_rules_in_the_plan_does_not_matter() -> None:
    third = counting("a-third", ["outer"], 1, 60.0)
    assert alerts([*burst(0, "x"), *burst(100, "y")], rules(third, OUTER, INNER), "a-third") != []


STEADY = [match("a", 10.0 * n, generation=n, serial=n) for n in range(900)]


@pytest.mark.parametrize(
    ("rule", "fires"),
    [
        (counting("many", ["a"], 2, 10.0), False),
        (counting("many", ["a"], 7, 60.0), False),
        (counting("many", ["a"], 6, 60.5), True),
        (correlation("order", "temporal_ordered", ["a", "a"], 10.0), False),
        (correlation("order", "temporal_ordered", ["a", "a"], 11.0), True),
    ],
)
def test_what_goes_on_for_long_is_counted_as_what_has_just_begun(rule: Correlation, fires: bool) -> None:
    assert bool(over(rule, *STEADY)) is fires


def test_a_burst_stays_an_alert_however_much_follows_it() -> None:
    items = [match("a", n / 2, serial=-n) for n in range(1, 6)] + STEADY[10:]
    rule = counting("many", ["a"], 5, 10.0, clear=Clear(in_s=5.0))
    for following in (20, len(items)):
        (alert,) = over(rule, *items[:following])
        assert (alert.starts_at, alert.count) == (at(0.5), 5)
        assert at(2.5) <= alert.last_seen < at(3)  # of what is folded the second is known


@pytest.mark.parametrize("dated", [True, False], ids=["dated", "undated"])
@pytest.mark.parametrize("collapse_s", [0.0, 30.0])
def test_of_a_storm_it_is_known_which_rule_and_which_value_it_was(collapse_s: float, dated: bool) -> None:
    storm = [match("a", n, dated=dated, topic="x", serial=n) for n in range(80, 500)]
    last = [one("a", 500, topic="y"), one("b", 501)]
    values = correlation("values", "value_count", ["a"], 60.0, condition=at_least(2), field="topic")
    order = correlation("order", "temporal_ordered", ["a", "b"], 60.0)
    a = signature("a", severity="info", collapse_s=collapse_s)
    made = plan(a, signature("b", severity="info"), values, order)
    for rule in ("values", "order"):
        assert len(alerts([*storm, *last], made, rule)) == 1
        assert alerts(storm, made, rule) == []
