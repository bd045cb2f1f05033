"""What a correlation counted, where it came nearest, and what was missing there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.cli.authoring.explaining import expression_text
from engine.cli.authoring.windows_view import CountedOccurrence, correlation_lines
from engine.dsl import load
from engine.model.rules import Correlation

NOON = datetime(2022, 10, 5, 12, tzinfo=UTC)
SIGNATURE = """\
id: {id}
title: "{id}"
status: stable
severity: info
component: broker
detection: {{seen: "{id} {{broker}} {{topic}}", condition: seen}}
entity: [cluster, broker]
tests: [{{log: "{id} 1 a", fires: {{broker: 1}}}}, {{log: "b", silent: true}}]
"""
CORRELATION = """\
id: watched
title: "watched"
status: stable
severity: high
component: broker
correlation: {body}
entity: [cluster, broker]
runbook: {{cause: Because, impact: None, fix: [{{do: Nothing}}]}}
tests: [{{log: "b", silent: true}}]
"""


@pytest.fixture
def correlation(tmp_path: Path) -> Any:
    def made(body: str) -> Correlation:
        for id_ in ("first", "second", "third"):
            (tmp_path / f"{id_}.yml").write_text(SIGNATURE.format(id=id_))
        (tmp_path / "watched.yml").write_text(CORRELATION.format(body=body))
        return next(each for each in load([tmp_path]).correlations if each.rule.id == "watched")

    return made


def at(seconds: float, rule: str = "first", broker: str = "1", topic: str = "a") -> CountedOccurrence:
    return CountedOccurrence(rule, NOON + timedelta(seconds=seconds), {"broker": broker, "topic": topic})


def lines(correlation: Correlation, *occurrences: CountedOccurrence, undated: int = 0, collapse_s: float = 0) -> list[str]:
    condition = expression_text(correlation.condition) if correlation.condition is not None else ""
    ordered = sorted(occurrences, key=lambda each: each.at)
    return [*correlation_lines(correlation, condition, ordered, undated, {"first": collapse_s})]


COUNT = "{type: event_count, rules: [first], group-by: [cluster, broker], timespan: 5m, condition: {gte: 4}}"


def test_a_count_names_its_best_window_and_how_many_were_missing(correlation: Any) -> None:
    text = lines(correlation(COUNT), at(0), at(290), at(310), at(320), at(900), at(0, broker="2"), undated=2)
    assert text == [
        "counts first (6)",
        "  from 2022-10-05 12:00:00 UTC to 2022-10-05 12:15:00 UTC",
        "  2 more without a time count in no window",
        "  broker=1: at most 3 within 5 min (2022-10-05 12:04:50 UTC to 12:05:20); `count >= 4` needs 1 more",
        "  broker=2: at most 1 within 5 min (2022-10-05 12:00:00 UTC to 12:00:00); `count >= 4` needs 3 more",
    ]


def test_a_count_that_holds_says_so(correlation: Any) -> None:
    text = lines(correlation(COUNT), *(at(second) for second in range(4)))
    assert text[-1].endswith("at most 4 within 5 min (2022-10-05 12:00:00 UTC to 12:00:03): `count >= 4` holds")


def test_matches_within_the_collapse_of_the_first_are_one(correlation: Any) -> None:
    text = lines(correlation(COUNT), *(at(second) for second in range(0, 70, 5)), collapse_s=20)
    assert "at most 3 within 5 min (2022-10-05 12:00:00 UTC to 12:00:50)" in text[-1]


def test_distinct_values_are_counted_once(correlation: Any) -> None:
    body = "{type: value_count, rules: [first], group-by: [cluster, broker], timespan: 5m, condition: {field: topic, gte: 3}}"
    text = lines(correlation(body), at(0, topic="a"), at(1, topic="a"), at(2, topic="b"))
    assert "broker=1: at most 2 values of topic within 5 min" in text[-1]
    assert text[-1].endswith("needs 1 more")


def test_an_order_says_how_far_it_came_and_what_did_not_follow(correlation: Any) -> None:
    ordered = correlation("{type: temporal_ordered, rules: [first, second, third], group-by: [cluster, broker], timespan: 1m}")
    text = lines(ordered, at(0, "first"), at(10, "second"), at(90, "third"))
    expected = "first at 12:00:00, second at 12:00:10 (from 2022-10-05 12:00:00 UTC); no third within 1 min"
    assert text[-1] == f"  broker=1: {expected}"
    assert lines(ordered, at(5, "second"))[-1] == "  broker=1: no first, which comes first"
    full = lines(ordered, at(0, "first"), at(10, "second"), at(20, "third"))
    assert full[-1] == "  broker=1: all in order from 2022-10-05 12:00:00 UTC to 12:00:20"


def test_a_pair_says_which_opening_waited_longest(correlation: Any) -> None:
    pair = correlation("{type: pair, open: [first], expect: [second], within: 1m, group-by: [cluster, broker]}")
    assert lines(pair, at(0, "first"), at(40, "second"))[-1].endswith("was answered after 40 s, within 1 min")
    assert lines(pair, at(0, "first"), at(10, "second"), at(20, "first"))[-1].endswith(
        "first at 2022-10-05 12:00:20 UTC has no second within 1 min"
    )
    assert lines(pair, at(0, "second"))[-1] == "  broker=1: no first, which opens the pair"


def test_nothing_counted_is_no_window(correlation: Any) -> None:
    assert lines(correlation(COUNT)) == ["counts first (0)"]
