"""Matchers: `label="value"` with =, !=, =~ and !~. Regular expressions are RE2, so no value can make them slow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from engine.model.records import Labels
from engine.model.routes import LabelMatcher
from engine.model.rules import SEVERITIES

_SHAPE = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"\',{}]+))\s*')


class MatcherError(ValueError):
    """Text that is not a matcher; str() is the error message."""


def parse_matcher(text: str) -> LabelMatcher:
    """Parse a matcher, e.g. `component="connect"` or `topic=~"orders\\..*"`; plain words need no quotes.

    Raises MatcherError.
    """
    parts = _SHAPE.fullmatch(text)
    if parts is None:
        raise MatcherError(f'`{text}` is not a matcher; write for example component="connect" or topic=~"orders.*"')
    label, op, quoted, word = parts.groups()
    value = re.sub(r'\\(["\\])', r"\1", quoted) if quoted is not None else word
    if op in ("=~", "!~"):
        _check(value)
    if label == "severity" and not any(_is_named(value, severity, op) for severity in SEVERITIES):
        raise MatcherError(f"`{text}` fits no severity; they are {', '.join(SEVERITIES)}")
    return LabelMatcher(label, op, value)


def holds(matchers: Iterable[LabelMatcher], labels: Labels) -> bool:
    """Return whether every matcher fits `labels`; true without matchers. A missing label counts as empty."""
    return all(_fits(matcher, labels.get(matcher.label, "")) for matcher in matchers)


def _fits(matcher: LabelMatcher, value: str) -> bool:
    return _is_named(matcher.value, value, matcher.op) is (matcher.op in ("=", "=~"))


def _is_named(expected: str, value: str, op: str) -> bool:
    """Return whether `value` equals, or matches, the `expected` value of a matcher, whether it is negated or not."""
    return value == expected if op in ("=", "!=") else _expression(expected).fullmatch(value) is not None


def _check(expression: str) -> None:
    try:
        _expression(expression)
    except re2.error as error:
        raise MatcherError(f"`{expression}` is not an expression that RE2 accepts ({error})") from None


@lru_cache(maxsize=1024)
def _expression(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(text, options)
