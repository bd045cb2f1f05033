"""Overrides: what a configuration may change of a rule, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.dsl import Override, lint, load
from engine.errors import UsageError
from engine.match.matcher import Matcher
from engine.model.expressions import Binary, Literal, NameExpression
from engine.model.rules import Item
from tests.building import contains, event
from tests.unit.dsl.writing import WITH_TOPIC, codes, rule, write


def test_overrides_disable_weigh_and_label(folder: Path) -> None:
    plan = load([folder], {"many": Override(disabled=True), "seen-once": Override(severity="low", labels={"team": "data"})})
    assert "many" not in plan.rules()
    assert (plan.rules()["seen-once"].severity, plan.rules()["seen-once"].labels) == ("low", {"team": "data"})
    assert plan.hash != load([folder]).hash


@pytest.mark.parametrize("overrides", [{"no-such-rule": Override()}, {"many": Override(severity="huge")}])
def test_a_wrong_override_is_told(folder: Path, overrides: dict[str, Override]) -> None:
    with pytest.raises(UsageError, match="overrides"):
        load([folder], overrides)


def test_an_override_excepts_what_is_known_and_only_that(folder: Path) -> None:
    known = Item("except", ((contains("in scratch"),),))
    change = Override(exceptions=known, unless=Binary("<", NameExpression("size"), Literal(100)))
    (matcher,) = (Matcher(load([folder], {"seen-once": change})),)
    lines = ["something bad in orders, 500 bytes", "something bad in scratch, 500 bytes", "something bad in orders, 99 bytes"]
    found = [bool(matcher.match_event(event(line))) for line in lines]
    assert found == [True, False, False]


@pytest.mark.parametrize(
    ("id", "change", "said"),
    [
        ("many", Override(unless=Literal(True)), "except events from many, which is a correlation"),
        ("seen-once", Override(unless=NameExpression("colour")), "use names that seen-once does not capture: colour"),
    ],
)
def test_an_exception_that_cannot_work_is_told(folder: Path, id: str, change: Override, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load([folder], {id: change})


def test_an_override_follows_a_rule_that_was_renamed(folder: Path) -> None:
    write(folder, seen_twice=rule("seen-twice", f"{WITH_TOPIC}\nreplaces: [seen-before]"))
    plan = load([folder], {"seen-before": Override(severity="low")})
    assert plan.rules()["seen-twice"].severity == "low"
    write(folder, seen_before=rule("seen-before", WITH_TOPIC))
    assert "TOC501" in codes(lint([folder]))
