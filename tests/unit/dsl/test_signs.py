"""What is said to be certain of an expression occurs in everything that it matches, in the dialect that runs."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from engine.dsl.signs import certain_texts, lines_with, signs_of_detection, signs_of_test
from engine.model.expressions import Binary, NameExpression, Unary
from engine.model.rules import Item, Test
from engine.model.signs import folded


@pytest.mark.parametrize(
    ("regex", "sets"),
    [
        (r"Could not roll pod (?P<pod>\S+?)(?:,| due to)", [("could not roll pod ",)]),
        (r"(?:IOException|OutOfMemoryError): Map failed", [("ioexception", "outofmemoryerror"), (": map failed",)]),
        (r"(?i)SSL\s+handshake failed|SslAuth", [("ssl handshake failed", "sslauth")]),
        (r"meta\.properties", [("meta.properties",)]),
        (r"abcd?", [("abc",)]),
        (r"abcd+e", [("abcd",)]),
        (r"xab{2}cde", [("xab",), ("bcde",)]),
        (r"x{a}yz", [("x{a}yz",)]),
        (r"(?:abcdef)?xyz", [("xyz",)]),
        (r"[abc]def[^]]ghij", [("def",), ("ghij",)]),
        (r"the (?P<said>group '(?P<g>[^']+)' is\b (dead))", [("the group '",), ("' is dead",)]),
        (r"broker \d+ is\t\n gone", [("broker 0",), ("0 is gone",)]),
        (r"error 35\b", [("error 00",)]),
        (r"^boom$", [("boom",)]),
        (r"Straße", [("strasse",)]),
    ],
)
def test_certain_texts(regex: str, sets: list[tuple[str, ...]]) -> None:
    assert list(certain_texts(regex)) == sets


@pytest.mark.parametrize(
    "regex", [r"a|bcd", r"\Qabc\E", r"\x41b", r"\pLab", r"ab", r"(abc", "abc)", "", r"(?:abc)*", r"abc|\d+"]
)
def test_what_is_not_understood_or_too_short_is_not_certain(regex: str) -> None:
    assert not certain_texts(regex)


COUNTS = ["{2}", "{0,12}", "{1,30}?", "{11}", "[{0,12}]", "{0}"]
CHARACTERS = ["abc", "d", "7", r"\.", r"\s", r"\s+", " ", r"\d", "[0-9]", r"\b", "^", "(?i)", "[xy]", ".", "é", "K", "def"]
SYNTAX = ["(?P<n>", "(?:", "(?s:", "(", ")", "|", "?", "*", "+", "+?"]
PIECES = st.sampled_from([*CHARACTERS, *SYNTAX, *COUNTS])
TEXTS = st.text(alphabet="abcdefxyk. é1\n\u212a", max_size=14)


@given(st.lists(PIECES, max_size=9).map("".join), st.lists(TEXTS, max_size=8))
def test_every_match_holds_one_text_of_each_set(regex: str, texts: list[str]) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error:
        return
    sets = certain_texts(regex)
    for text in (*texts, *("abc" * 3 + x + " 7 def" for x in texts)):
        if compiled.search(text):
            assert [words for words in sets if not any(word in folded(text.encode()).decode() for word in words)] == []


def test_the_rarest_text_is_the_sign() -> None:
    assert lines_with("[groupcoordinator ") > lines_with("unclean leader election") == 0
    assert signs_of_test("re", "text", "", r"\[GroupCoordinator \d+\]: .* zebra (?:x|y)") == (" zebra ",)
    assert signs_of_test("contains", "message", "Disk  Error 17") == ("disk error 00",)
    assert signs_of_test("contains", "logger", "kafka") == ()
    assert signs_of_test("gt", "text", "5") == ()


def test_signs_of_a_detection() -> None:
    tests = {
        name: Test("text", "contains", name, signs=signs_of_test("contains", "text", name)) for name in ("zebra", "yak herd")
    }
    one, other = (Item(name, ((test,),)) for name, test in zip("ab", tests.values(), strict=True))
    unknown = Item("c", ((Test("logger", "contains", "kafka"),),))
    a, b, c = map(NameExpression, "abc")
    for condition, signs in (
        (a, ("zebra",)),
        (Binary("or", a, b), ("zebra", "yak herd")),
        (Binary("and", a, b), ("yak herd",)),
        (Binary("and", a, c), ("zebra",)),
        (Binary("or", a, c), ()),
        (Unary("not", a), ()),
        (Binary("and", a, Unary("not", b)), ("zebra",)),
    ):
        assert signs_of_detection((one, other, unknown), condition) == signs
