"""The gate: one search of the text that tells which signatures can match at all, by the texts that they cannot do without.

It may let events through that match nothing; it never holds back one that matches. Most log lines stop here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import re2

from engine.match.certain import certain_texts, most_telling
from engine.match.checks import EXPRESSION_MEMORY
from engine.model.expressions import Binary, Expression, Name
from engine.model.rules import Item, Test


class Text(NamedTuple):
    """A fixed text, in whatever case where `nocase`."""

    text: str
    nocase: bool = False


Needs = tuple[frozenset[Text], ...]
"""Alternatives: in an event's text, all texts of at least one of them must occur."""

NOTHING: Needs = (frozenset(),)  # no texts at all: whatever the event
_MAX_ALTERNATIVES = 64
_SEARCHES = ("pattern", "re")
_FLAGS = re.compile(r"\(\?([im]+)\)")  # those that leave every character its meaning


def needs_of(items: Sequence[Item], condition: Expression) -> Needs:
    """Return what must occur in an event's text for `condition` to hold."""
    return _needs({item.name: needs_of_any(item.any_of) for item in items}, condition)


def needs_of_any(groups: Iterable[Sequence[Test]]) -> Needs:
    """Return what must occur in an event's text for one of the groups of tests to hold."""
    return _either(*(_all(tests) for tests in groups))


def _all(tests: Sequence[Test]) -> Needs:
    found = NOTHING
    for test in tests:
        found = _both(found, _of_test(test))
    return found


def _needs(items: Mapping[str, Needs], condition: Expression) -> Needs:
    match condition:
        case Name(name):
            return items.get(name, NOTHING)
        case Binary("and", left, right):
            return _both(_needs(items, left), _needs(items, right))
        case Binary("or", left, right):
            return _either(_needs(items, left), _needs(items, right))
    return NOTHING


def _either(*choices: Needs) -> Needs:
    """Return what is needed when one of several must hold: nothing when one of them needs nothing."""
    found = dict.fromkeys(alternative for needs in choices for alternative in needs)
    return NOTHING if not found or frozenset() in found else tuple(found)


def _both(left: Needs, right: Needs) -> Needs:
    """Return what is needed when both must hold; where that would be too much to say, the more telling of the two."""
    if len(left) * len(right) > _MAX_ALTERNATIVES:
        least = {tuple(min((t.text for t in each), key=len) for each in needs if each): needs for needs in (left, right)}
        return least[most_telling(least)]
    return tuple(dict.fromkeys(one | other for one in left for other in right))


def _of_test(test: Test) -> Needs:
    if test.field != "text" or (test.nocase and test.op not in _SEARCHES):
        return NOTHING
    if test.literals:
        return (frozenset(Text(text, test.nocase) for text in test.literals),)
    if test.op not in _SEARCHES:
        return NOTHING
    flags = _FLAGS.match(test.regex)
    nocase = test.nocase or (flags is not None and "i" in flags[1])
    texts = certain_texts(test.regex[flags.end() :] if flags else test.regex)
    return tuple(frozenset((Text(text, nocase),)) for text in texts) or NOTHING


class Gate:
    """Tells which of several needs a text meets; a need that it does not name is not met."""

    __slots__ = ("_always", "_by_text", "_set")

    def __init__(self, needs: Sequence[Needs]) -> None:
        """Number the needs as they stand in `needs`."""
        texts = sorted({text for each in needs for alternative in each for text in alternative})
        self._set = _set_of(texts)
        self._always = frozenset(number for number, each in enumerate(needs) if frozenset() in each)
        self._by_text = _by_text(needs, {text: at for at, text in enumerate(texts)})

    def met(self, text: bytes) -> frozenset[int]:
        """Return the numbers of the needs that `text` (UTF-8) meets."""
        found = self._set.Match(text) if self._set is not None else ()
        if not found:
            return self._always
        known = frozenset(found)
        possible = (entry for at in found for entry in self._by_text[at])
        return self._always.union(number for alternative, number in possible if alternative <= known)


def _by_text(needs: Sequence[Needs], position: Mapping[Text, int]) -> tuple[tuple[tuple[frozenset[int], int], ...], ...]:
    """Return, for each text, the alternatives to look at when it occurs: each is listed once, at its longest text."""
    found: list[list[tuple[frozenset[int], int]]] = [[] for _ in position]
    for number, each in enumerate(needs):
        for alternative in each:
            if alternative:
                longest = max(alternative, key=lambda each: (len(each.text), each))
                found[position[longest]].append((frozenset(position[text] for text in alternative), number))
    return tuple(map(tuple, found))


def _set_of(texts: Sequence[Text]) -> re2.Set | None:
    """Return the expressions of `texts`, searched for all at once."""
    if not texts:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = EXPRESSION_MEMORY
    made = re2.Set.SearchSet(options)
    for text in texts:
        made.Add(_quoted(text))
    made.Compile()
    return made


def _quoted(wanted: Text) -> str:
    """Return an RE2 expression for exactly that text."""
    chars = (char if char.isalnum() or not char.isascii() else f"\\x{ord(char):02x}" for char in wanted.text)
    return ("(?i)" if wanted.nocase else "") + "".join(chars)
