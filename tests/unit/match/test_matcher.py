"""A signature matches exactly the events its detection describes, with typed captures; the prefilter never costs a match."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dsl.signs import signs_of_detection
from engine.match import Matcher
from engine.model.expressions import Binary, Literal, NameExpression, Unary
from engine.model.rules import Captured, Item, Signature, Test
from tests.building import broker, contains, detecting, event, pattern, plan, rule, signature


def matches(signature: Signature, text: str, **fields: Any) -> list[Any]:
    return [dict(found.captures) for found in Matcher(plan(signature)).match_event(event(text, **fields))]


def detection(condition: Any, **items: tuple[Test, ...]) -> Signature:
    return detecting(rule("r"), [Item(name, (tests,)) for name, tests in items.items()], condition)


SIZE = pattern(r"is\s+([0-9]+)\s+bytes", "size:bytes", literals=("bytes",))


def test_captures_are_typed() -> None:
    test = pattern(r"a=(\S+) b=(\S+) c=(\S+) d=(\S+) e=(\S+)", "a:int", "b:num", "c:bytes", "d:ms", "e:word")
    assert matches(signature("r", test), "a=-3 b=2.5 c=1048576 d=300000 e=007") == [
        {"a": -3, "b": 2.5, "c": 1048576, "d": 300000, "e": "007"}
    ]


def test_a_number_that_is_too_long_stays_text() -> None:
    assert matches(signature("r", pattern(r"a=(\d+)", "a:int")), "a=" + "9" * 40) == [{"a": "9" * 40}]


def test_a_size_may_have_a_unit() -> None:
    assert matches(signature("r", pattern(r"a=(.+)$", "a:bytes")), "a=1 MB") == [{"a": 1048576}]


def test_a_repeated_name_must_hold_equal_text() -> None:
    twice = pattern(r"from (\w+) to (\w+)", "t", "t")
    assert matches(signature("r", twice), "from a to b") == []
    assert matches(signature("r", twice), "from a to b, from c to c") == [{"t": "c"}]


def test_an_item_not_named_in_the_condition_only_adds_captures() -> None:
    both = detection(NameExpression("large"), large=(SIZE,), sent=(pattern(r"topic (\w+)", "topic"),))
    assert matches(both, "is 5 bytes") == [{"size": 5}]
    assert matches(both, "topic t1 is 5 bytes") == [{"size": 5, "topic": "t1"}]
    assert matches(both, "topic t1") == []


def test_unknown_does_not_match_and_neither_does_its_negation() -> None:
    compared = Binary(">", NameExpression("size"), Literal(3))
    assert (
        matches(detection(Binary("and", NameExpression("any"), compared), any=(contains("x"),), large=(SIZE,)), "x is 5 bytes")
        == []
    )
    negated = Binary("and", NameExpression("any"), Unary("not", compared))
    assert matches(detection(negated, any=(contains("x"),), large=(SIZE,)), "x") == []


def test_a_comparison_on_a_capture_decides() -> None:
    deciding = Binary("and", NameExpression("large"), Binary(">", NameExpression("size"), Literal(3)))
    assert matches(detection(deciding, large=(SIZE,)), "is 5 bytes") == [{"size": 5}]
    assert matches(detection(deciding, large=(SIZE,)), "is 3 bytes") == []


def test_a_negated_item() -> None:
    silent = detection(
        Binary("and", NameExpression("a"), Unary("not", NameExpression("b"))), a=(contains("alpha"),), b=(contains("beta"),)
    )
    assert matches(silent, "alpha") == [{}]
    assert matches(silent, "alpha beta") == []
    assert matches(detection(Unary("not", NameExpression("b")), b=(contains("beta"),)), "gamma") == [{}]


@pytest.mark.parametrize(
    ("test", "holds", "fails"),
    [
        (Test("level", "contains", "ERR"), {"level": "ERROR"}, {"level": "WARN"}),
        (Test("logger", "endswith", ".Sender"), {"logger": "o.a.k.Sender"}, {"logger": "o.a.k.SenderX"}),
        (Test("thread", "startswith", "kafka-"), {"thread": "kafka-1"}, {"thread": "a-kafka-1"}),
        (Test("exception", "endswith", "TooLarge"), {"exception": ("a.B", "c.TooLarge")}, {"exception": ("a.B",)}),
        (Test("labels.task", "gte", "3"), {"labels": {"task": "3"}}, {"labels": {"task": "2"}}),
        (Test("labels.task", "gt", "3"), {"labels": {"task": "4"}}, {"labels": {"task": "x"}}),
        (Test("labels.task", "lt", "3"), {"labels": {"task": "2"}}, {}),
        (Test("labels.task", "lte", "3"), {"labels": {"task": "3"}}, {"labels": {"task": "4"}}),
        (Test("labels.task", "exists", "true"), {"labels": {"task": "0"}}, {}),
        (Test("labels.task", "exists", "false"), {}, {"labels": {"task": "0"}}),
        (Test("labels", "contains", "task=7"), {"labels": {"task": "7"}}, {"labels": {"task": "8"}}),
        (Test("level", "contains", "error", nocase=True), {"level": "ERROR"}, {"level": "WARN"}),
        (Test("level", "re", "^ERR", "^ERR"), {"level": "ERROR"}, {"level": "XERR"}),
        (Test("level", "pattern", "err", "err", (), (), True), {"level": "ERROR"}, {"level": "WARN"}),
    ],
)
def test_operators(test: Test, holds: dict[str, Any], fails: dict[str, Any]) -> None:
    assert matches(signature("r", test), "x", **holds) == [{}]
    assert matches(signature("r", test), "x", **fails) == []


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="no such operator: near"):
        Matcher(plan(signature("r", Test("text", "near", "x")))).match_event(event("x"))


def test_a_match_carries_the_event_and_only_redacted_text() -> None:
    line = event("boom password=hunter2", 5, "b.log", number=7, labels={"broker": "1"})
    (found,) = Matcher(plan(signature("r", contains("boom")))).match_event(line)
    assert (found.rule_id, found.event_id, found.source_id, found.number) == ("r", line.event_id, "b.log", 7)
    assert (found.at, found.dated, found.labels["broker"]) == (line.timestamp, True, "1")
    assert found.text == "boom password=[redacted]"


def test_component_lines() -> None:
    found = Matcher(plan(components=(broker(),))).match_event(event("broker=3 version 2.6.0 Removed 0 expired"))
    assert [(match.rule_id, dict(match.captures)) for match in found] == [
        ("component:broker/names", {"member": "3"}),
        ("component:broker/version", {"version": "2.6.0"}),
        ("component:broker/heartbeat", {"beat": 0, "every_s": 600.0}),
    ]


def test_text_that_is_not_ascii_and_lone_surrogates() -> None:
    assert matches(signature("r", pattern(r"채널 (\S+)", "c", literals=("채널",))), "채널 데이터") == [{"c": "데이터"}]
    assert matches(signature("r", contains("boom")), "boom \ud800") == [{}]


LITERALS = st.sampled_from(["ab", "b.c", "c|d", "é", "(x"])
GROUPS = st.lists(st.lists(LITERALS, min_size=1, max_size=2), min_size=1, max_size=2)  # any group; all of its texts
ITEMS = st.dictionaries(st.sampled_from(["i", "j", "k"]), GROUPS, min_size=1)
CONDITIONS = st.recursive(
    st.sampled_from([NameExpression("i"), NameExpression("j"), NameExpression("k"), Literal(True)]),
    lambda inner: st.one_of(
        st.builds(Unary, st.just("not"), inner), st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner)
    ),
    max_leaves=5,
)


@given(ITEMS, CONDITIONS, st.lists(st.sampled_from(["ab", "b.c", "c|d", "é", "(x", "zz"]), max_size=4))
def test_the_prefilter_never_costs_a_match(items: dict[str, list[list[str]]], condition: Any, words: list[str]) -> None:
    with_signs, without = (
        [Item(name, tuple(tuple(map(test, group)) for group in groups)) for name, groups in items.items()]
        for test in (contains, _without_signs)
    )
    assert signs_of_detection(without, condition) == ()
    matches, naive = (
        Matcher(plan(detecting(rule("r"), some, condition))).match_event(event(" ".join(words)))
        for some in (with_signs, without)
    )
    assert matches == naive


def _without_signs(word: str) -> Test:
    return Test("text", "contains", word, literals=(word,))


def test_a_capture_is_the_first_of_the_deciding_items() -> None:
    first, second = pattern(r"a=(\w+)", "v"), pattern(r"b=(\w+)", "v")
    ordered = Signature(rule("r"), (Item("extra", ((first,),)), Item("line", ((second,),))), NameExpression("line"))
    assert matches(ordered, "a=1 b=2") == [{"v": "2"}]


def test_groups_that_took_no_part_capture_nothing() -> None:
    either = Test("text", "re", "", r"x=(\d+)|y=(\d+)", (), (Captured(1, "x", "int"), Captured(2, "y", "int")))
    assert matches(signature("r", either), "y=4") == [{"y": 4}]
