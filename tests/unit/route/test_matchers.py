"""Matchers: read, refused with a sentence, and held against labels."""

import pytest

from engine.model.routes import LabelMatcher
from engine.route import MatcherError, holds, parse_matcher

LABELS = {"component": "connect", "topic": "orders.v1", "quote": 'a"b'}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ('component="connect"', True),
        ("component=connect", True),
        (' component = "broker" ', False),
        ('component!="broker"', True),
        ('topic=~"orders\\..*"', True),
        ('topic=~"orders"', False),
        ('topic!~"payments.*"', True),
        ('missing=""', True),
        ('missing!=""', False),
        ('missing=~".+"', False),
        ('quote="a\\"b"', True),
    ],
)
def test_matchers_hold_or_not(text: str, fits: bool) -> None:
    assert holds([parse_matcher(text)], LABELS) is fits


def test_all_must_hold_and_none_hold_always() -> None:
    assert holds([], {})
    assert not holds([parse_matcher("component=connect"), parse_matcher("topic=x")], LABELS)


@pytest.mark.parametrize("text", ["", "component", "=x", 'a=="b"', 'a="b', 'a=~"("', "a b=c", 'a="b" c="d"'])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(MatcherError):
        parse_matcher(text)


def test_a_matcher_is_written_as_it_is_read() -> None:
    matcher = LabelMatcher("quote", "!=", 'a"\\b')
    assert parse_matcher(str(matcher)) == matcher


@pytest.mark.parametrize("text", ["severity=critcal", "severity!=hihg", 'severity=~"hi"', 'severity!~"warn.*"'])
def test_a_severity_that_does_not_exist_is_a_mistake(text: str) -> None:
    with pytest.raises(MatcherError, match="fits no severity; they are info, low, medium, high, critical"):
        parse_matcher(text)


@pytest.mark.parametrize("text", ["severity=high", "severity!=low", 'severity=~"high|critical"', 'severity=~".*"'])
def test_severities_that_exist_may_be_named(text: str) -> None:
    assert parse_matcher(text).label == "severity"
