"""Signs: expressions of which one matches in every text that bears what is looked for. Never missing, sometimes crying wolf.

A sign is read off the tests of a detection: the solid part of an expression, a text that must occur in it or in the message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from engine.codec import dumps, loads
from engine.match import certain
from engine.match.certain import certain_texts, solid_part
from engine.model.expressions import Binary, Expression, NameExpression
from engine.model.rules import BEGINNING, Item, Plan, Test
from engine.ports import Cache

_NAMED_GROUP = re.compile(r"(?<!\\)\(\?P?<\w+>")
_BEGUN = re.compile(rf"{re.escape(BEGINNING)}\(\?:(.*)\)", re.DOTALL)  # as Test.at_beginning writes it


class Signs(Struct, frozen=True):
    """Expressions of which one matches in every text that bears something; none: not known. `weight`: how seldom they do. Their
    groups have no names: alternatives may share one in RE2, and nowhere else.

    `whole`: they are what is looked for itself, so that texts in which they match alike bear it alike.
    """

    regexes: tuple[str, ...] = ()
    weight: int = 0
    whole: bool = False


def signs_in(plan: Plan, kept: Cache | None = None) -> Mapping[str, Signs]:
    """Return the signs of each signature of `plan`, by rule id.

    Args:
        kept: where they may lie ready: to read them off takes as long as to scan a small log.
    """
    if kept is None or not plan.hash:
        return _signs_in(plan)
    name, found = f"{kept_name('signs', (plan.hash,), (__file__, certain.__file__))}.json", dict[str, Signs]()
    with suppress(ValueError):  # damaged: they can be read off again
        found = loads(kept.load(name) or "{}", dict[str, Signs])
    if not all(each.rule.id in found for each in plan.signatures):
        found = _signs_in(plan)
        kept.store(name, dumps(found).encode())
    return found


def _signs_in(plan: Plan) -> dict[str, Signs]:
    return {each.rule.id: signs_of(each.items, each.condition) for each in plan.signatures}


def kept_name(kind: str, content: Iterable[str], modules: Iterable[str] = ()) -> str:
    """Return under which name, but for its suffix, something is kept that hangs on `content`, and on how the code of `modules`
    (files) makes it: an installation that is edited in place changes without a new version."""
    parts = (*(text.encode() for text in content), *(Path(file).read_bytes() for file in modules))
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
    return f"{kind}-{digest}"


def signs_of(items: Sequence[Item], condition: Expression) -> Signs:
    """Return the signs of a detection: of two conditions that must both hold, those of the more telling one."""
    return _signs({item.name: test_signs(item.any_of) for item in items}, condition)


def test_signs(groups: Iterable[Sequence[Test]]) -> Signs:
    """Return the signs of several groups of tests of which one must hold whole."""
    return _either([max(map(_of_test, tests), key=_weight, default=Signs()) for tests in groups])


def _signs(items: Mapping[str, Signs], condition: Expression) -> Signs:
    match condition:
        case NameExpression(name):
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


@cache
def _of_test(test: Test) -> Signs:
    if test.field not in ("text", "message"):
        return Signs()
    if test.op in ("contains", "startswith", "endswith"):
        return _weighed(re.escape(test.value), len(test.value), test.nocase)
    return _of_regex(test) if test.op in ("pattern", "re") else Signs()


def _of_regex(test: Test) -> Signs:
    regex = _NAMED_GROUP.sub("(?:", test.regex)
    begun = _BEGUN.fullmatch(regex) if test.op == "pattern" else None  # what begins a message stands somewhere in the text
    if begun is not None:
        regex = begun[1]
    # any other expression over a message, which is a piece of the text, may ask for ends of its own
    solid = solid_part(regex) if test.field == "text" or begun is not None else None
    if solid is not None:
        return _weighed(solid.regex, solid.weight, test.nocase, whole=solid.regex == test.regex)
    texts = () if test.nocase else certain_texts(regex)
    return _either([_weighed(re.escape(text), len(text)) for text in texts])


def _weighed(regex: str, weight: int, nocase: bool = False, whole: bool = False) -> Signs:
    if not weight:
        return Signs()
    return Signs(("(?i)" + regex if nocase and not regex.startswith("(?") else regex,), weight, whole)
