"""What is written is what is read: plans, findings and incidents survive their JSON form unchanged."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import codec
from engine.model.expressions import Binary, Call, Expression, Literal, NameExpression, Unary
from engine.model.incidents import Alert, Capture, Verdict
from engine.model.rules import Captured, Correlation, Hole, Item, Plan, Rule, Runbook, Signature, Step, Template, Test

AT = datetime(2022, 10, 5, 17, 5, 39, 869000, tzinfo=UTC)
CONDITION = Binary("and", NameExpression("a"), Unary("not", Binary(">=", NameExpression("size"), Literal(2.5))))
TEMPLATE = Template(
    ("grow to ", Hole(Call("ceil_pow2", (NameExpression("size"),)), unit="bytes", charset="int", source="size"))
)
RULE = Rule(
    id="x",
    title=TEMPLATE,
    status="stable",
    severity="low",
    component="any",
    versions=((">=", "0.9"),),
    entity={"broker": "node"},
    runbook=Runbook(TEMPLATE, TEMPLATE, (Step(TEMPLATE, set={"a": TEMPLATE}, run=(TEMPLATE,)),)),
)


def test_a_plan_survives() -> None:
    test = Test("text", "pattern", regex="a(b)", literals=("a",), captures=(Captured(1, "size", "int"),))
    plan = Plan(
        formats=(),
        components=(),
        signatures=(Signature(RULE, (Item("a", ((test,),)),), CONDITION),),
        correlations=(Correlation(RULE, "event_count", ("x",), 60.0, Binary(">=", NameExpression("count"), Literal(4))),),
    )
    assert codec.loads(codec.dumps(plan), Plan) == plan


def test_every_kind_of_expression_survives_with_the_types_of_its_literals() -> None:
    for value in (1, 1.5, "1", True):
        read = codec.loads(codec.dumps(Literal(value)), Expression)
        assert read == Literal(value)
        assert type(read.value) is type(value)


def test_a_verdict_survives_and_keeps_numbers_apart_from_text() -> None:
    alert = Alert(
        key=("prod", "x", (("broker", "1"),)),
        status="firing",
        severity="low",
        starts_at=AT,
        last_seen=AT,
        ends_at=None,
        count=1,
        dated=True,
        captures={"size": Capture((1125872, "1125872", 0.5), first=1125872.0)},
    )
    assert codec.loads(codec.dumps(Verdict(alert.key, (alert,), AT)), Verdict) == Verdict(alert.key, (alert,), AT)


def test_a_time_is_the_same_instant_whatever_its_zone() -> None:
    seoul = datetime(2022, 10, 6, 2, 5, 39, 1000, tzinfo=timezone(timedelta(hours=9)))
    read = codec.loads(codec.dumps(Verdict(("p", "x", ()), (), seoul)), Verdict)
    assert read == Verdict(("p", "x", ()), (), seoul)


def test_what_is_plain_comes_back_from_json_as_it_is_and_can_be_made_again() -> None:
    places = {7: Verdict(("p", "x", (("broker", "1"),)), (), AT)}
    plain = codec.plain(places)
    assert json.loads(json.dumps(plain)) == plain
    assert codec.made(plain, dict[int, Verdict]) == places


@given(st.text(alphabet='{}[]",:0123456789.eE+-\\\\udxn \ttrufalsNI', max_size=30) | st.text(max_size=20).map(json.dumps))
def test_what_others_wrote_is_read_as_python_reads_it(text: str) -> None:
    read = []
    for reader in (codec.foreign, json.loads):
        try:
            read.append(repr(reader(text)))
        except ValueError:
            read.append("refused")
    assert read[0] == read[1]


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert codec.foreign('{"\\ud800": ["a\\udfff", "\\ud83d\\ude00"]}') == {"?": ["a?", "\U0001f600"]}


@pytest.mark.parametrize("text", ["NaN", "1e999", "-Infinity", "18446744073709551617", '{"a": 1, "a": 2}'])
def test_so_is_what_few_libraries_take(text: str) -> None:
    assert repr(codec.foreign(text)) == repr(json.loads(text))


def test_what_is_no_json_or_of_another_kind_is_refused() -> None:
    for text in ("{", "[]", '{"key": 1}'):
        with pytest.raises(msgspec.DecodeError):
            codec.loads(text, Verdict)
