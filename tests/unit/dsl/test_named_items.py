"""Items in `when`: true when they held in any match of the alert, told from captures of the same name, refused as values."""

from pathlib import Path

import pytest

from engine.dsl import load, load_pack
from engine.match import Matcher
from engine.model.expressions import Binary, Call, ItemExpression, NameExpression, Unary
from engine.model.incidents import Incident
from engine.model.records import RawLine
from engine.model.rules import Plan
from engine.pipeline import replay
from tests.building import event
from tests.unit.dsl.writing import codes, write

FORMATS = Path(__file__).parents[3] / "rules" / "formats"
RULE = """\
id: closed
title: Closed
severity: high
component: any
detection:
  closed: "is closed on {{node:int}}"
  login: {{text|contains: at login}}
  tls: {{text|contains: handshake}}
  of_one: {{text|contains: of one}}
  of_two: {{text|contains: of two}}
  client: "client {{client}}"
  topic: {{text|contains: topic}}
  condition: closed
entity: [cluster]
runbook:
  cause: Nobody knows
  impact: None
  cases: [{{when: "{when}", cause: It is known}}]
  fix: [{{do: Look}}]
"""


def final(plan: Plan, *texts: str) -> Incident:
    """Return the last revision of the only incident of these events, one a second."""
    lines = (f"[2026-11-21 08:05:{second:02},000] WARN {text} (a.B)".encode() for second, text in enumerate(texts))
    revisions = list(replay((RawLine("a.log", number, line) for number, line in enumerate(lines)), plan))
    assert len({incident.id for incident in revisions if incident.status != "merged"}) == 1
    return revisions[-1]


def when_of(folder: Path, when: str) -> object:
    [signature] = load([write(folder, closed=RULE.format(when=when))]).signatures
    return signature.rule.runbook.cases[0].when


def findings_of(folder: Path, when: str) -> list[str]:
    return codes(load_pack([write(folder, closed=RULE.format(when=when))]).errors())


def test_a_name_that_stands_alone_is_the_item(tmp_path: Path) -> None:
    login, tls = ItemExpression("login"), ItemExpression("tls")
    assert when_of(tmp_path, "login") == login
    assert when_of(tmp_path, "not login or tls and node < 0") == Binary(
        "or",
        Unary("not", login),
        Binary("and", tls, when_of(tmp_path, "node < 0")),  # type: ignore[arg-type]
    )


def test_quantifiers_range_over_items(tmp_path: Path) -> None:
    assert when_of(tmp_path, "1 of of_*") == Binary("or", ItemExpression("of_one"), ItemExpression("of_two"))


def test_in_a_comparison_and_in_a_function_a_name_is_the_capture(tmp_path: Path) -> None:
    assert when_of(tmp_path, "known(client)") == Call("known", (NameExpression("client"),))


def test_an_item_hides_a_label_of_its_name(tmp_path: Path) -> None:
    assert when_of(tmp_path, "topic") == ItemExpression("topic")


@pytest.mark.parametrize("when", ["client", "not client and login", "known(login)", "login == 'x'", "login + 1 > 2"])
def test_what_is_not_clear_is_refused(tmp_path: Path, when: str) -> None:
    assert findings_of(tmp_path, when) == ["TOC309"]


def test_a_name_that_is_neither_is_told_with_the_nearest_item(tmp_path: Path) -> None:
    [finding] = load_pack([write(tmp_path, closed=RULE.format(when="logn"))]).errors()
    assert (finding.code, "login" in finding.help) == ("TOC403", True)


def test_it_held_when_it_held_in_any_match(tmp_path: Path) -> None:
    plan = load([write(tmp_path, closed=RULE.format(when="login and not tls")), FORMATS])
    quiet, at_login, tls = "is closed on 1", "is closed on 1 at login", "is closed on 1: handshake"
    for texts, cause in (
        ((quiet, quiet), "Nobody knows"),
        ((quiet, at_login), "It is known"),
        ((at_login, quiet), "It is known"),
        ((at_login, tls), "Nobody knows"),
    ):
        assert final(plan, *texts).cause == cause


def test_a_correlation_may_name_the_items_of_its_members(tmp_path: Path) -> None:
    counted = (
        "id: often\ntitle: Often\nseverity: high\ncomponent: any\n"
        "correlation: {type: event_count, rules: [closed], group-by: [cluster], timespan: 1h, condition: {gte: 2}}\n"
        "explains: [{rules: [closed], by: [cluster], scope_wide: true}]\n"
        "runbook: {cause: Often, impact: None, cases: [{when: login, cause: Often at login}], fix: [{do: Look}]}\n"
    )
    plan = load([write(tmp_path, closed=RULE.format(when="tls"), often=counted), FORMATS])
    assert [match.items for match in Matcher(plan).match_event(event("is closed on 1 at login"))] == [("login",)]
    incident = final(plan, "is closed on 1", "is closed on 2 at login")
    assert (incident.rule, incident.cause) == ("often", "Often at login")
