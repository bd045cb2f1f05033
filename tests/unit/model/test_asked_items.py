"""A match carries the truth of the items that somebody asks for, and of no other."""

from engine.match import Matcher
from engine.model.asked_items import asked_items
from engine.model.expressions import Expression, ItemExpression, Unary
from engine.model.rules import Case, Escalation, Item, Plan, Runbook, Signature, Step, ToldAs
from tests.building import contains, counting, event, pattern, plan, rule, signature, text
from tests.building import correlation as correlating

LOGIN, TLS = ItemExpression("login"), ItemExpression("tls")


def asking(*whens: Expression) -> Runbook:
    return Runbook(text("why"), text(""), tuple(Step(text("do"), when=when) for when in whens))


def closing(**changes: object) -> Signature:
    items = (*signature("closed").items, *(Item(name, ((contains(name),),)) for name in ("login", "tls", "unasked")))
    size = Item("size", ((pattern("size ([0-9]+)", "bytes:int"),),))
    made = signature("closed")
    return Signature(rule("closed", **changes), (*items, size), made.condition)


def items_of(rules: Plan, line: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(match.rule_id, match.items) for match in Matcher(rules).match_event(event(line))]


def test_a_match_carries_the_items_that_a_step_asks_for() -> None:
    made = plan(closing(runbook=asking(LOGIN, Unary("not", TLS))))
    assert items_of(made, "closed at login of tls, unasked") == [("closed", ("login", "tls"))]
    assert items_of(made, "closed, unasked") == [("closed", ())]
    assert items_of(made, "login") == []


def test_an_item_of_the_condition_may_be_asked_for_too() -> None:
    made = plan(closing(runbook=asking(ItemExpression("line"))))
    assert items_of(made, "closed at login") == [("closed", ("line",))]


def test_escalations_cases_and_names_ask_as_steps_do() -> None:
    case = Case(LOGIN, text("then"))
    for changes in (
        {"escalate": (Escalation("high", LOGIN),)},
        {"told_as": (ToldAs("closed", LOGIN, text("so")),)},
        {"runbook": Runbook(text("why"), text(""), cases=(case,))},
    ):
        assert asked_items(plan(closing(**changes))) == {"closed": ("login",)}


def test_a_correlation_asks_those_below_it() -> None:
    often = counting("often", ["closed"], 2, 60, runbook=asking(TLS))
    ever = correlating("ever", "event_count", ["often"], 600, runbook=asking(LOGIN))
    assert asked_items(plan(closing(), signature("other"), often, ever)) == {"closed": ("login", "tls")}


def test_who_is_asked_for_nothing_carries_nothing() -> None:
    assert asked_items(plan(closing())) == {}
    assert items_of(plan(closing()), "closed at login of tls, size 7") == [("closed", ())]
