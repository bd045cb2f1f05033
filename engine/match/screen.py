"""The screen: one pass over raw bytes that tells where anything a plan looks for may end. It never misses; it may cry wolf.

Each signature gives signs, expressions of which one matches in every text that bears it. A database of Hyperscan looks for all
signs at once, at a cost that hardly grows with their number; without Hyperscan one RE2 expression does, more slowly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from engine.match.certain import certain_texts, solid_part
from engine.match.checks import expression
from engine.model.expressions import Binary, Expression, Name
from engine.model.rules import Item, Test

try:
    import hyperscan
except ImportError:  # no wheel for this machine
    hyperscan = None  # type: ignore[assignment]

_LIGHTEST = 4  # a sign of fewer fixed characters is found in every other line


@dataclass(frozen=True, slots=True)
class Signs:
    """Expressions of which one matches in every text that bears something; none: not known. `weight`: how seldom they do.

    `whole`: they are what is looked for itself, so that texts in which they match alike bear it alike.
    """

    regexes: tuple[str, ...] = ()
    weight: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A sign ends before position `end`. `said` is what it matched, where only that counts, not how often; empty elsewhere."""

    end: int
    said: bytes = b""


Find = Callable[[bytes], list[Hit]]


def signs_of(items: Sequence[Item], condition: Expression) -> Signs:
    """Return the signs of a detection: of two conditions that must both hold, those of the more telling one."""
    return _signs({item.name: test_signs(item.any_of) for item in items}, condition)


def test_signs(groups: Iterable[Sequence[Test]]) -> Signs:
    """Return the signs of several groups of tests of which one must hold whole."""
    return _either([max(map(_of_test, tests), key=_weight, default=Signs()) for tests in groups])


class Screen:
    """Looks for signs in raw bytes, for one thread at a time.

    Args:
        counted: the signs of what counts each time it is said.
        named: the signs of what is known once it was said a few times in the same words.
        database: use Hyperscan.

    `complete` tells whether every sign is known; if not, hits mean nothing.
    """

    def __init__(self, counted: Iterable[Signs], named: Iterable[Signs] = (), database: bool = hyperscan is not None) -> None:
        all_named = list(named)
        given = [*counted, *all_named]
        self.complete = all(each.regexes for each in given)
        regexes = list(dict.fromkeys(regex for each in given for regex in each.regexes))
        alike = {regex for each in all_named if each.whole for regex in each.regexes}
        alike -= {regex for each in given if each not in all_named for regex in each.regexes}
        self.hits: Find = (_hyperscan if database else _re2)(regexes, alike) if regexes else lambda data: []


def _signs(items: Mapping[str, Signs], condition: Expression) -> Signs:
    match condition:
        case Name(name):
            return items.get(name, Signs())
        case Binary("and", left, right):
            return max(_signs(items, left), _signs(items, right), key=_weight)
        case Binary("or", left, right):
            return _either((_signs(items, left), _signs(items, right)))
    return Signs()


def _weight(signs: Signs) -> int:
    return signs.weight


def _either(choices: Sequence[Signs]) -> Signs:
    if not choices or not all(signs.regexes for signs in choices):
        return Signs()
    regexes = tuple(regex for signs in choices for regex in signs.regexes)
    return Signs(regexes, min(map(_weight, choices)), all(signs.whole for signs in choices))


def _of_test(test: Test) -> Signs:
    if test.field != "text" or not (test.regex + test.value).isascii():
        return Signs()
    if test.op in ("contains", "startswith", "endswith"):
        return _weighed(re.escape(test.value), len(test.value), test.nocase)
    return _of_regex(test) if test.op in ("pattern", "re") else Signs()


def _of_regex(test: Test) -> Signs:
    solid = solid_part(test.regex)
    if solid is not None:
        return _weighed(solid.regex, solid.weight, test.nocase, whole=solid.regex == test.regex)
    texts = () if test.nocase else certain_texts(test.regex)
    return _either([_weighed(re.escape(text), len(text)) for text in texts])


def _weighed(regex: str, weight: int, nocase: bool = False, whole: bool = False) -> Signs:
    if weight < _LIGHTEST:
        return Signs()
    return Signs(("(?i)" + regex if nocase and not regex.startswith("(?") else regex,), weight, whole)


def _hyperscan(regexes: Sequence[str], alike: Set[str]) -> Find:
    database = hyperscan.Database()
    # PREFILTER: what Hyperscan cannot express exactly matches more, never less; it does not go with the start of a match
    kinds = (hyperscan.HS_FLAG_PREFILTER, hyperscan.HS_FLAG_SOM_LEFTMOST)
    flags = [hyperscan.HS_FLAG_MULTILINE | kinds[regex in alike] for regex in regexes]
    database.compile(expressions=[regex.encode() for regex in regexes], ids=list(range(len(regexes))), flags=flags)
    says = [regex in alike for regex in regexes]

    def find(data: bytes) -> list[Hit]:
        found: list[Hit] = []

        def hit(number: int, start: int, end: int, _flags: int, _context: object) -> None:
            found.append(Hit(end, data[start:end] if says[number] else b""))

        database.scan(data, match_event_handler=hit)
        return found

    return find


def _re2(regexes: Sequence[str], alike: Set[str]) -> Find:
    """Find with RE2, which names one of several signs in the same place only: nothing is known to be said alike."""
    compiled = expression("(?m)" + "|".join(f"(?:{regex})" for regex in regexes))
    return lambda data: [Hit(hit.end()) for hit in compiled.finditer(data)]
