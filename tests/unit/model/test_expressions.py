"""Evaluation is total and three-valued: what hangs on a missing capture is unknown, and unknown never matches."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.expressions import (
    FUNCTIONS,
    UNKNOWN,
    Binary,
    Call,
    Expression,
    Literal,
    NameExpression,
    Unary,
    ceil_pow2,
    evaluate,
    holds,
    names,
    reassignment,
    round_up,
)

SIZE, LIMIT, MISSING = NameExpression("size"), NameExpression("limit"), NameExpression("missing")
ENV = {"size": 1125872, "limit": 1048576, "topic": "A.B-C", "yes": True, "no": False}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (Binary(">", SIZE, LIMIT), True),
        (Binary("-", SIZE, LIMIT), 77296),
        (Call("ceil_pow2", (SIZE,)), 2097152),
        (Call("max", (SIZE, LIMIT)), 1125872),
        (Unary("-", LIMIT), -1048576),
        (Binary("==", Call("lower", (NameExpression("topic"),)), Literal("a.b-c")), True),
        (Call("without", (Literal("PLAINTEXT,OUTSIDE,INSIDE"), Literal("PLAINTEXT,CONTROLLER"))), "OUTSIDE,INSIDE"),
        (Call("without", (Literal("PLAINTEXT"), Literal("PLAINTEXT"))), ""),
    ],
)
def test_arithmetic_and_comparison_over_captures(expression: Expression, value: object) -> None:
    assert evaluate(expression, ENV) == value


@pytest.mark.parametrize(
    ("op", "left", "right", "value"),
    [
        ("and", NameExpression("no"), MISSING, False),
        ("and", MISSING, NameExpression("no"), False),
        ("and", NameExpression("yes"), MISSING, UNKNOWN),
        ("or", NameExpression("yes"), MISSING, True),
        ("or", MISSING, NameExpression("yes"), True),
        ("or", NameExpression("no"), MISSING, UNKNOWN),
    ],
)
def test_a_missing_side_decides_only_what_it_cannot_change(op: str, left: Expression, right: Expression, value: object) -> None:
    assert evaluate(Binary(op, left, right), ENV) is value


def test_comparison_with_a_missing_capture_is_unknown_and_so_is_its_negation() -> None:
    compared = Binary(">", MISSING, LIMIT)
    assert evaluate(compared, ENV) is UNKNOWN
    assert evaluate(Unary("not", compared), ENV) is UNKNOWN


@pytest.mark.parametrize(
    "expression",
    [
        Binary("/", SIZE, Literal(0)),
        Binary("<", SIZE, NameExpression("topic")),
        Binary("-", SIZE, NameExpression("topic")),
        Call("ceil_pow2", (NameExpression("topic"),)),
        Unary("-", NameExpression("topic")),
        Binary("*", Literal("ab"), Literal(10**18)),
    ],
)
def test_an_operation_without_an_answer_is_unknown(expression: Expression) -> None:
    assert evaluate(expression, ENV) is UNKNOWN


@given(st.integers(min_value=1, max_value=2**40))
def test_ceil_pow2_is_the_smallest_power_that_holds_the_number(number: int) -> None:
    power = ceil_pow2(number)
    assert power >= number
    assert power & (power - 1) == 0
    assert power == 1 or power // 2 < number


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=1, max_value=10**6))
def test_round_up_reaches_the_next_multiple_and_no_further(number: int, step: int) -> None:
    rounded = round_up(number, step)
    assert rounded % step == 0
    assert 0 <= rounded - number < step


def test_reassignment_names_every_broker_for_every_partition_once() -> None:
    plan = json.loads(reassignment("account_event", [1, 0, 1], "1,2,3"))
    assert plan == {
        "version": 1,
        "partitions": [
            {"topic": "account_event", "partition": 0, "replicas": [1, 2, 3]},
            {"topic": "account_event", "partition": 1, "replicas": [1, 2, 3]},
        ],
    }


def test_names_lists_what_an_expression_depends_on() -> None:
    assert names(Binary("and", Unary("not", NameExpression("a")), Call("min", (NameExpression("b.max"), Literal(1))))) == {
        "a",
        "b.max",
    }


LEAVES = st.one_of(
    st.builds(Literal, st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.booleans())),
    st.builds(NameExpression, st.sampled_from([*ENV, "missing"])),
)
OPERATORS = st.sampled_from(["and", "or", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Unary, st.sampled_from(["not", "-"]), inner),
        st.builds(Binary, OPERATORS, inner, inner),
        st.builds(Call, st.sampled_from(sorted(FUNCTIONS)), st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_evaluation_never_raises(expression: Expression) -> None:
    evaluate(expression, ENV)


@pytest.mark.parametrize("op", ["==", "<", "<=", ">", ">=", "and"])
def test_to_hold_or_not_a_missing_value_equals_nothing_and_differs_from_everything(op: str) -> None:
    compared = Binary(op, MISSING, SIZE)
    assert (holds(compared, ENV), holds(Unary("not", compared), ENV)) == (False, True)
    assert evaluate(compared, ENV) is UNKNOWN


def test_to_hold_is_as_evaluated_where_nothing_is_missing() -> None:
    larger, equal = Binary(">", SIZE, LIMIT), Binary("==", SIZE, LIMIT)
    assert (holds(larger, ENV), holds(equal, ENV), holds(Unary("not", equal), ENV)) == (True, False, True)
    assert holds(Binary("!=", MISSING, SIZE), ENV)
    assert not holds(MISSING, ENV)
    assert not holds(Binary(">", Literal("a"), SIZE), ENV)  # it has no value
    assert holds(Binary("or", Binary("==", MISSING, SIZE), larger), ENV)
    assert not holds(Binary("and", Binary("==", MISSING, SIZE), larger), ENV)
    assert holds(Unary("not", Call("known", (MISSING,))), ENV)
