"""The result of a backtest as people and programs read it."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from engine.cli.backtest_report import Backtest, html_of, json_of, junit_of, text_of
from engine.comparing import differences, messages
from engine.model.routes import Route
from tests.unit.test_comparing import NOON, incident

OLD = (incident("1"), incident("2", "old <rule>"))
CHANGED = (incident("1", severity="low"), incident("3", "new"))


def result(with_rules: bool) -> Backtest:
    told = messages(OLD, Route("ops"))
    if not with_rules:
        return Backtest(OLD, told)
    return Backtest(OLD, told, CHANGED, messages(CHANGED, Route("ops")), differences(OLD, CHANGED))


def test_the_text_without_other_rules_is_the_incidents_and_who_would_be_told() -> None:
    assert list(text_of(result(False))) == [
        "2 incidents over this history.",
        "  2026-10-05 12:00:00 UTC  critical  rule of a  (topic=a)",
        "  2026-10-05 12:00:00 UTC  critical  old <rule> of a  (topic=a)",
        "",
        "ops would be told of 2 incidents on 1 day, 2 on 2026-10-05 alone",
        "      1  rule",
        "      1  old <rule>",
    ]


def test_the_text_with_other_rules_is_what_differs() -> None:
    assert list(text_of(result(True)))[:4] == [
        "2 incidents by the rules of the configuration, 2 by the new ones: 3 differences.",
        "  2026-10-05 12:00:00 UTC  is low instead of critical: rule of a  (topic=a)",
        "  2026-10-05 12:00:00 UTC  vanishes: old <rule> of a  (topic=a)",
        "  2026-10-05 12:00:00 UTC  appears: new of a  (topic=a)",
    ]
    assert "ops would be told of 2 incidents (before: 2) on 1 day, 2 on 2026-10-05 alone" in list(text_of(result(True)))


def test_json_names_both_sides_of_a_difference() -> None:
    value = json.loads(json.dumps(json_of(result(True))))
    assert [(d["kind"], d["before"], d["after"]) for d in value["differences"]] == [
        ("severity", "1", "1"),
        ("vanishes", "2", None),
        ("appears", None, "3"),
    ]
    assert value["told"] == [
        {"receiver": "ops", "incidents": 2, "by_day": {"2026-10-05": 2}, "by_rule": {"rule": 1, "old <rule>": 1}, "muted": 0}
    ]
    assert "differences" not in json_of(result(False))


def test_junit_has_a_failure_for_each_difference() -> None:
    suite = ET.fromstring(junit_of(result(True)))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    assert [failure.get("type") for failure in suite.iter("failure")] == ["severity", "vanishes", "appears"]
    alone = ET.fromstring(junit_of(result(False)))
    assert (alone.get("tests"), alone.get("failures"), len(list(alone.iter("failure")))) == ("2", "0", 0)


def test_the_page_shows_each_incident_that_differs_and_escapes_all() -> None:
    page = html_of(result(True), NOON)
    assert "old &lt;rule&gt; of a" in page
    assert "<rule>" not in page
    assert "Who would be told" in page
