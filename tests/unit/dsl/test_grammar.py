from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dsl.grammar import MAX_DEPTH, ExpressionError, parse
from engine.dsl.units import in_units
from engine.model.expressions import FUNCTIONS, UNKNOWN, evaluate

ITEMS = ("sent_a", "sent_b", "connect")


@pytest.mark.parametrize(
    ("text", "environment", "value"),
    [
        ("a or b and not c", {"a": False, "b": True, "c": False}, True),
        ("not a or b", {"a": True, "b": False}, False),
        ("(a or b) and c", {"a": True, "b": False, "c": False}, False),
        ("1 + 2 * 3 - 4 / 2", {}, 5),
        ("-(2 - 5) % 2", {}, 1),
        ("10 - 3 - 2", {}, 5),
        ("lasting > 10m", {"lasting": 601}, True),
        ("500ms + 1h + 1d", {}, 90000.5),
        ("size.max >= 1048576", {"size.max": 1048576}, True),
        ("lower(level) == 'error'", {"level": "ERROR"}, True),
        ('x == "a and b"', {"x": "a and b"}, True),
        ("max(a, b * 2, 3)", {"a": 1, "b": 4}, 8),
        ("ceil_pow2(size)", {"size": 1125872}, 2097152),
        ("x == true", {"x": True}, True),
        ("1 of sent_*", {"sent_a": False, "sent_b": True}, True),
        ("any of them", {"sent_a": False, "sent_b": False, "connect": False}, False),
        ("all of sent_* and not connect", {"sent_a": True, "sent_b": True, "connect": False}, True),
        ("a > 1", {}, UNKNOWN),
        ("offset > order", {"offset": 2, "order": 1}, True),
    ],
)
def test_expressions_mean_what_they_say(text: str, environment: dict[str, Any], value: Any) -> None:
    assert evaluate(parse(text, ITEMS), environment) == value


@pytest.mark.parametrize(
    ("text", "code", "offset"),
    [
        ("", "TOC401", 0),
        ("a and", "TOC401", 4),
        ("a and or b", "TOC401", 6),
        ("(a", "TOC401", 1),
        ("a)", "TOC401", 1),
        ("a == 1 == 2", "TOC401", 7),
        ("a.b", "TOC401", 0),
        ("a[0]", "TOC401", 1),
        ("A or b", "TOC401", 0),
        ("10mm", "TOC401", 0),
        ("a + open(b)", "TOC404", 4),
        ("max(a, -not b)", "TOC401", 8),
        ("a and min()", "TOC405", 6),
        ("ceil_pow2(1, 2)", "TOC405", 0),
        ("a > 12345678901234567890", "TOC406", 4),
        ("1 of nothing_*", "TOC407", 0),
        ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), "TOC402", MAX_DEPTH),
        ("not " * (MAX_DEPTH + 1) + "a", "TOC402", 0),
        ("not " * 1000 + "a", "TOC402", 0),
        ("a " * 3000, "TOC401", 0),
    ],
)
def test_a_wrong_expression_says_what_and_where(text: str, code: str, offset: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, ITEMS)
    assert (caught.value.code.id, caught.value.offset) == (code, offset)


def test_parentheses_may_go_as_deep_as_the_limit() -> None:
    assert evaluate(parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH), {"a": 7}) == 7


def test_calls_may_go_as_deep_as_the_limit() -> None:
    depth = MAX_DEPTH - 1
    assert evaluate(parse("max(1, " * depth + "a" + ")" * depth), {"a": 7}) == 7


def test_a_long_chain_of_items_is_no_deep_expression() -> None:
    names = [f"a{index}" for index in range(300)]
    assert evaluate(parse(" or ".join(names)), dict.fromkeys(names, False) | {"a299": True}) is True


WORDS = ["a", "sent_a", "and", "or", "not", "(", ")", "1", "10m", "'x'", "==", "<", "+", "-", "*", "/", ",", "."]
TOKENS = st.sampled_from([*WORDS, *FUNCTIONS, "1 of sent_*", "all of them"])


@settings(deadline=None)
@given(st.lists(TOKENS, max_size=30).map(" ".join) | st.text(max_size=60))
def test_any_text_gives_an_expression_or_an_expression_error(text: str) -> None:
    try:
        made = parse(text, ITEMS)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)
    else:
        evaluate(made, {"a": 1, "sent_a": True})


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("waited > 5m", True),
        ("waited > 301s", False),
        ("5m < waited and waited <= 300500ms", True),
        ("waited - 1m > 4m", True),
        ("max(waited, 6m) == 6m", True),
        ("seconds > 5m", False),
        ("seconds == 5m", True),
        ("waited / 1000 > 5m", True),
        ("size >= 1.5MiB", True),
        ("size > 2MiB", False),
    ],
)
def test_values_are_compared_in_their_units(text: str, holds: bool) -> None:
    types = {"waited": "ms", "seconds": "num", "size": "bytes"}
    known = {"waited": 300_500, "seconds": 300.0, "size": 2 * 1024 * 1024}
    assert evaluate(in_units(parse(text), types), known) is holds
