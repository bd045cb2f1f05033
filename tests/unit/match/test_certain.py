"""What is said to be certain occurs in everything an expression matches, in the dialect that runs."""

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from engine.match.certain import all_certain_texts, certain_texts, solid_part


@pytest.mark.parametrize(
    ("regex", "texts"),
    [
        (r"Could not roll pod (?P<pod>\S+?)(?:,| due to)", ("Could not roll pod ",)),
        (r"(?:IOException|OutOfMemoryError): Map failed", ("OutOfMemoryError", "IOException")),
        (r"SSL handshake failed|SslAuthenticationException", ("SSL handshake failed", "SslAuthenticationException")),
        (r"meta\.properties", ("meta.properties",)),
        (r"abcd?", ("abc",)),
        (r"abcd+e", ("abcd",)),
        (r"ab{2}cde", ("cde",)),
        (r"x{a}yz", ("x{a}yz",)),
        (r"(?:abcdef)?xyz", ("xyz",)),
        (r"[abc]def[^]]ghij", ("ghij",)),
    ],
)
def test_fixed_texts_are_found(regex: str, texts: tuple[str, ...]) -> None:
    found = certain_texts(regex)
    assert set(found) == set(texts) or found == (": Map failed",)


@pytest.mark.parametrize("regex", [r"(?i)group", r"a|bcd", r"\Qabc\E", r"\x41bcd", r"(?s:abc)", r"\pLabcd", r"ab", r"(abc", ""])
def test_what_is_not_understood_or_too_short_is_not_certain(regex: str) -> None:
    assert certain_texts(regex) == ()


@pytest.mark.parametrize(
    ("regex", "texts"),
    [
        (
            r"Quota\s+manager (?P<n>\d+) could not (?:commit|register)\b",
            [("Quota",), ("manager ",), (" could not ",), ("commit", "register")],
        ),
        (r"rolled to|fell off", [("rolled to", "fell off")]),
        (r"(?i)group", []),
    ],
)
def test_all_that_is_certain_is_found(regex: str, texts: list[tuple[str, ...]]) -> None:
    assert list(all_certain_texts(regex)) == texts


COUNTS = ["{2}", "{0,12}", "{1,30}?", "{11}", "[{0,12}]"]
PIECES = st.sampled_from(
    ["abc", "d", r"\.", r"\s", "[xy]", ".", "é", "(?P<n>", "(?:", "(", ")", "|", "?", "*", "+", "+?", "def", *COUNTS]
)
TEXTS = st.text(alphabet="abcdefxy. é", max_size=14)


@given(st.lists(PIECES, max_size=9).map("".join), st.lists(TEXTS, max_size=8))
def test_every_match_holds_one_of_each_set_of_texts(regex: str, texts: list[str]) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error:
        return
    certain = [*all_certain_texts(regex), *([some] if (some := certain_texts(regex)) else [])]
    for text in (*texts, *("abc" * 3 + x + "def" for x in texts)):
        found = compiled.search(text)
        if found:
            assert [some for some in certain if not any(each in found.group(0) for each in some)] == []


@pytest.mark.parametrize(
    ("regex", "solid"),
    [
        (r"(\S+) rolled to (\S+)", r" rolled to "),
        (r"a b(?P<n>\d+) c.*", r"a b(?P<n>\d+) c"),
        (r"(?s).*Caused by: (?P<reason>[^\n]+?)(?:\s|$)", r"(?s)Caused by: "),
        (r"(?:Foo|Bar)Exception", r"(?:Foo|Bar)Exception"),
        (r"x(?:one|two)*", "x"),
        (r"one|two (\d+)", "one|two "),
        (r"of [^\n]{0,300}? in .{1,9} or [{0,20}]{16} is", r"of [^\n]*? in .{1,9} or [{0,20}]+ is"),
    ],
)
def test_the_solid_part_begins_and_ends_in_what_is_fixed(regex: str, solid: str) -> None:
    found = solid_part(regex)
    assert found is not None
    assert found.regex == solid


@pytest.mark.parametrize("regex", [r"(\d+)", r"one|\d+", r"^$", r"one$two", r"(?:one|two$) three", r"\Qabc\E", "(abc", ""])
def test_what_has_no_solid_part(regex: str) -> None:
    assert solid_part(regex) is None


@given(st.lists(PIECES, max_size=9).map("".join), st.lists(TEXTS, max_size=8))
def test_the_solid_part_is_in_every_match(regex: str, texts: list[str]) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(regex, options)
    except re2.error:
        return
    solid = solid_part(regex)
    for text in texts if solid is not None else ():
        found = compiled.search(text)
        assert found is None or re2.search(solid.regex, found.group(0)) is not None
