"""What matchers can match: compared with trying every combination of values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.routes import LabelMatcher
from engine.route import covers, excludes_all, holds, parse_matcher, words_of

DOMAINS = {"severity": {"low", "high", "critical"}, "cluster": {"prod", "test"}, "team": {"", "data"}}
WORDS = ["low", "high", "critical", "prod", "test", "data", "low|high", "prod|test", ".*", "h.*", "nothing"]
LABELS = st.sampled_from([*DOMAINS])
MATCHERS = st.builds(LabelMatcher, LABELS, st.sampled_from(["=", "!=", "=~", "!~"]), st.sampled_from(WORDS))
SOME = st.lists(MATCHERS, max_size=4)


def matched(matchers: Sequence[LabelMatcher]) -> set[tuple[str, ...]]:
    return {values for values in product(*DOMAINS.values()) if holds(matchers, dict(zip(DOMAINS, values, strict=True)))}


@given(SOME)
def test_matchers_exclude_all_when_no_labels_fit(matchers: list[LabelMatcher]) -> None:
    assert excludes_all(matchers, DOMAINS) is (matched(matchers) == set())


@given(SOME, SOME)
def test_matchers_cover_others_when_all_their_labels_fit(wide: list[LabelMatcher], narrow: list[LabelMatcher]) -> None:
    if matched(narrow):
        assert covers(wide, narrow, DOMAINS) is (matched(narrow) <= matched(wide))


@given(SOME, SOME)
def test_without_domains_an_answer_yes_is_right(wide: list[LabelMatcher], narrow: list[LabelMatcher]) -> None:
    if covers(wide, narrow, {}):
        assert matched(narrow) <= matched(wide)
    if excludes_all(narrow, {}):
        assert matched(narrow) == set()


@pytest.mark.parametrize(
    ("text", "words"), [("a=b", ["b"]), ('a!="b c"', ["b c"]), ('a=~"b|c-d"', ["b", "c-d"]), ('a=~"b.*"', []), ('a=~"b|"', [])]
)
def test_the_words_of_a_matcher(text: str, words: list[str]) -> None:
    assert list(words_of(parse_matcher(text))) == words
