"""What matchers can match: whether some exclude each other, and whether some hold whenever others do. Pure.

The answers are exact for labels with a known, finite set of values. For other labels a `True` is certain, and a `False` may
only mean that it could not be decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set

from engine.model.routes import LabelMatcher
from engine.route.matchers import holds

Domains = Mapping[str, Set[str]]  # label -> every value that it can have, the empty text if it may be missing

_WORDS = re.compile(r"[\w/ -]+(?:\|[\w/ -]+)*")  # an expression that is a list of plain words
_EVERYTHING = frozenset((".*", "^.*$", "(.*)"))


def words_of(matcher: LabelMatcher) -> tuple[str, ...]:
    """Return the values that `matcher` names: that of = and !=, the words of an expression such as `a|b`; none of another
    expression."""
    if matcher.op in ("=", "!="):
        return (matcher.value,)
    return tuple(matcher.value.split("|")) if _WORDS.fullmatch(matcher.value) else ()


def excludes_all(matchers: Iterable[LabelMatcher], domains: Domains) -> bool:
    """Return whether no labels exist for which all `matchers` hold."""
    return any(_values(label, group, domains) == frozenset() for label, group in _by_label(matchers).items())


def covers(wide: Iterable[LabelMatcher], narrow: Iterable[LabelMatcher], domains: Domains) -> bool:
    """Return whether all of `wide` hold for all labels for which all of `narrow` hold."""
    narrow_groups = _by_label(narrow)
    return all(_group_covers(label, group, narrow_groups.get(label, ()), domains) for label, group in _by_label(wide).items())


def _group_covers(label: str, wide: tuple[LabelMatcher, ...], narrow: tuple[LabelMatcher, ...], domains: Domains) -> bool:
    values = _values(label, narrow, domains)
    if values is not None:
        return all(holds(wide, {label: value}) for value in values)
    return all(matcher in narrow or (matcher.op == "=~" and matcher.value in _EVERYTHING) for matcher in wide)


def _values(label: str, matchers: tuple[LabelMatcher, ...], domains: Domains) -> frozenset[str] | None:
    """Return the values of `label` for which all `matchers` hold; None when they cannot be listed."""
    if (domain := domains.get(label)) is not None:
        return frozenset(value for value in domain if holds(matchers, {label: value}))
    for matcher in matchers:
        if matcher.op in ("=", "=~") and (words := words_of(matcher)):
            return frozenset(word for word in words if holds(matchers, {label: word}))
    return None


def _by_label(matchers: Iterable[LabelMatcher]) -> Mapping[str, tuple[LabelMatcher, ...]]:
    groups: dict[str, tuple[LabelMatcher, ...]] = {}
    for matcher in matchers:
        groups[matcher.label] = (*groups.get(matcher.label, ()), matcher)
    return groups
