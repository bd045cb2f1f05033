"""Compiles tests of the rule language into checks: functions that return the captures of an event, or None when the test does
not hold."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import re2

from engine.match.fields import Fields, casefolded, encoded
from engine.match.values import typed
from engine.model.matches import Value
from engine.model.rules import Captured, Test

Captures = Mapping[str, Value]
FieldCheck = Callable[[Fields], Captures | None]

NOTHING: Captures = {}

_CapturedGroup = tuple[str, int, str]  # name, group, type

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_AFFIX: Mapping[str, Callable[[bytes, bytes], bool]] = {
    "contains": lambda value, wanted: wanted in value,
    "startswith": bytes.startswith,
    "endswith": bytes.endswith,
}
EXPRESSION_MEMORY = 64 << 20  # bytes that RE2 may use for one expression


def compile_check(test: Test) -> FieldCheck:
    """Return the check of `test`. Raises ValueError for an operator that does not exist."""
    if test.op in ("pattern", "re"):
        return _search(test)
    if test.op in _AFFIX:
        return _affix(test)
    if test.op in _COMPARE:
        return _compare(test)
    if test.op == "exists":
        return _exists(test)
    raise ValueError(f"no such operator: {test.op}")


def all_of(checks: Sequence[FieldCheck]) -> FieldCheck:
    """Return a check that holds when all `checks` hold. Where several capture one name, the first wins."""
    if len(checks) == 1:
        return checks[0]

    def check_all(fields: Fields) -> Captures | None:
        merged: dict[str, Value] = {}
        for check in checks:
            captures = check(fields)
            if captures is None:
                return None
            merged = {**captures, **merged}
        return merged

    return check_all


def any_of(checks: Sequence[FieldCheck]) -> FieldCheck:
    """Return a check that returns the captures of the first of `checks` that holds."""
    if len(checks) == 1:
        return checks[0]

    def check_any(fields: Fields) -> Captures | None:
        for check in checks:
            captures = check(fields)
            if captures is not None:
                return captures
        return None

    return check_any


@cache
def expression(regex: str, nocase: bool = False) -> re2._Regexp:
    """Return `regex` compiled by RE2: it searches bytes in linear time. RE2 logs nothing."""
    options = re2.Options()
    options.case_sensitive = not nocase
    options.log_errors = False
    options.max_mem = EXPRESSION_MEMORY
    return re2.compile(regex, options)


def _search(test: Test) -> FieldCheck:
    literals = () if test.nocase else tuple(encoded(text) for text in test.literals)
    signs = () if literals else tuple(encoded(sign) for sign in test.signs)
    field, captures_of, regex, nocase = test.field, _capturing(test.captures), test.regex, test.nocase

    def check(fields: Fields) -> Captures | None:
        if signs and not fields.has_any(signs):  # most expressions are never compiled
            return None
        for value in fields.values(field):
            for literal in literals:  # faster than a generator: most tests end at their first literal
                if literal not in value:
                    break
            else:
                captures = captures_of(expression(regex, nocase), value)  # compiled when first needed: most never are
                if captures is not None:
                    return captures
        return None

    return check


def _capturing(captured: Sequence[Captured]) -> Callable[[re2._Regexp, bytes], Captures | None]:
    """Return the function that searches a value and returns its captures: those of the first occurrence in which holes of equal
    names have equal text. None when there is no such occurrence."""
    if not captured:
        return lambda compiled, value: NOTHING if compiled.search(value) else None
    holes = tuple((hole.name, hole.group, hole.type) for hole in captured)
    if len({name for name, _, _ in holes}) < len(holes):
        return lambda compiled, value: _first(_equal(hit, holes) for hit in compiled.finditer(value))

    def captures_of_first(compiled: re2._Regexp, value: bytes) -> Captures | None:
        hit = compiled.search(value)
        return None if hit is None else _typed(hit, holes)

    return captures_of_first


def _first(candidates: Iterable[Captures | None]) -> Captures | None:
    return next((captures for captures in candidates if captures is not None), None)


def _typed(hit: re2._Match, holes: Sequence[_CapturedGroup]) -> Captures:
    """Return the captured values by name; a hole that took no part in the match is left out."""
    return {
        name: typed(text.decode("utf-8", "replace"), type_) for name, group, type_ in holes if (text := hit[group]) is not None
    }


def _equal(hit: re2._Match, holes: Sequence[_CapturedGroup]) -> Captures | None:
    """Return the captured values by name, typed as the first hole of a name; None when holes of one name differ in text."""
    texts: dict[str, bytes] = {}
    for name, group, _ in holes:
        text = hit[group]
        if text is not None and texts.setdefault(name, text) != text:
            return None
    first = {name: (name, group, type_) for name, group, type_ in reversed(holes) if hit[group] is not None}
    return _typed(hit, [first[name] for name in texts])


def _affix(test: Test) -> FieldCheck:
    holds, field = _AFFIX[test.op], test.field
    if test.nocase:
        caseless = casefolded(encoded(test.value))
        return lambda fields: NOTHING if any(holds(value, caseless) for value in fields.casefolded(field)) else None
    wanted = encoded(test.value)
    return lambda fields: NOTHING if any(holds(value, wanted) for value in fields.values(field)) else None


def _compare(test: Test) -> FieldCheck:
    holds, field, bound = _COMPARE[test.op], test.field, float(test.value)

    def check(fields: Fields) -> Captures | None:
        numbers = (_number(value) for value in fields.values(field))
        return NOTHING if any(number is not None and holds(number, bound) for number in numbers) else None

    return check


def _exists(test: Test) -> FieldCheck:
    wanted, field = test.value == "true", test.field
    return lambda fields: NOTHING if bool(fields.values(field)) is wanted else None


def _number(value: bytes) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
