"""Whether digits matter to an expression, a test, a rule."""

from __future__ import annotations

import re
from random import Random

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from engine.match.checks import expression
from engine.match.digits import ALIKE, is_digit_blind, may_differ, widened
from engine.match.masking import hints
from engine.model.rules import Captured, Test
from engine.parse import exceptions
from tests.rulepack.playing import plan

PIECES = (
    "a",
    "1",
    "[0-9]",
    "[1-5]",
    "[^0-9]",
    "[^3]",
    r"\d",
    r"\w",
    r"\S",
    ".",
    "[a-f0-9]",
    r"\b",
    "(?P<x1>[0-9]+)",
    "(?:b|2)",
)
COUNTS = ("", "*", "+?", "{1,2}", "{2}")
REGEX = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(COUNTS)), min_size=1, max_size=5).map(
    lambda parts: "".join(f"(?:{piece}){count}" if count else piece for piece, count in parts)
)
TEXT = st.text("ab0123 -", max_size=12)


def spans(found: re2._Match | None) -> list[tuple[int, int]]:
    return [] if found is None else [found.span(group) for group in range(len(found.groups()) + 1)]


@pytest.mark.parametrize(
    ("regex", "wide"),
    [
        (r"node (?P<n1>-?[0-9]+) {3}\d{1,2}[\w.-]\x41", None),
        ("[19]", "(?:[19]|[0-9])"),
        (r"\[19\] a", r"\[(?:1|[0-9])(?:9|[0-9])\] a"),
        ("[^4]x", "(?:[^4]|[0-9])x"),
        (r"\x31\.", r"(?:\x31|[0-9])\."),
        ("(?i:a|5)", "(?i:a|(?:5|[0-9]))"),
    ],
)
def test_what_tells_digits_apart_takes_them_all(regex: str, wide: str | None) -> None:
    assert widened(regex) == (wide or regex)


def test_what_is_not_understood_has_no_wide_form() -> None:
    assert widened(r"\Q1+1\E") is None


@given(REGEX, TEXT, st.randoms())
def test_a_wide_expression_matches_whatever_the_digits(regex: str, text: str, random: Random) -> None:
    other = re.sub("[0-9]", lambda _: random.choice("0123456789"), text)
    found, elsewhere = expression(regex).search(text.encode()), expression(regex).search(other.encode())
    wide = widened(regex)
    assert wide is not None
    if elsewhere is not None:
        assert expression(wide).search(text.encode()) is not None
    if wide == regex:
        assert spans(found) == spans(elsewhere)


def test_every_shipped_expression_has_a_wide_form() -> None:
    groups = [tests for signature in plan().signatures for item in signature.items for tests in item.any_of]
    tests = [test for group in groups for test in group if test.regex]
    for test in tests:
        wide = widened(test.regex)
        assert wide is not None
        expression(wide, test.nocase)
    assert sum(map(is_digit_blind, tests)) > 0.9 * len(tests)


def test_what_every_event_is_read_with_tells_no_digits_apart() -> None:
    for compiled in (hints.HINT, hints.PHONE_HINT, exceptions._CHAIN, exceptions._NAMED_NEXT):
        assert widened(compiled.pattern) == compiled.pattern


def test_tests_to_which_digits_matter() -> None:
    assert is_digit_blind(Test("text", "contains", "Disk error"))
    assert not is_digit_blind(Test("text", "contains", "error 17"))
    assert not is_digit_blind(Test("text", "gt", "7"))
    assert is_digit_blind(Test("text", "exists", "true"))
    twice = (Captured(1, "port", "int"), Captured(2, "port", "int"))
    assert not is_digit_blind(Test("text", "re", "", regex="([0-9]+):([0-9]+)", captures=twice))


def test_what_holds_without_any_digit_does_not_differ() -> None:
    test = Test("text", "re", regex=r"(?i)kafka|:909[2-8]\b")
    assert not may_differ(test, b"a.kafka.b at 0")
    assert may_differ(test, b"a.b at :0000")
    assert not may_differ(test, b"a.b at :00")


def test_digits_matter_to_what_captures_them_by_their_value() -> None:
    (loopback,) = (
        test
        for signature in plan().signatures
        for item in signature.items
        for tests in item.any_of
        for test in tests
        if test.value == "Connection to node {node:int} ({host:word}/127.0.0.1:{port:int}) could not be established"
    )
    text = b"[2022-10-05 10:00:00,000] WARN Connection to node 1 (a/127.0.0.1:9092) could not be established.".translate(ALIKE)
    assert may_differ(loopback, text)
    assert not may_differ(loopback, b"Shrinking ISR from 0,0,0 to 0")
