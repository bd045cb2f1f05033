"""Versions: whether the version that a component printed is in the range of a rule."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

VersionBounds = Sequence[tuple[str, str]]

_NUMBERS = re.compile(r"\d{1,9}")
_LEADING = re.compile(r"\D*(\d+(?:\.\d+)*)")
_HOLDS: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def within(version: str, bounds: VersionBounds) -> bool:
    """Return whether `version` meets every bound; a version without a number (a build name) does.

    Only as many parts are compared as the bound has: 2.6.1 meets `<=2.6` and `==2.6`, not `>2.6`.
    """
    leading = _LEADING.match(version)
    if leading is None:
        return True
    parts = _parts(leading[1])
    return all(_meets(parts, op, _parts(bound)) for op, bound in bounds)


def written(bounds: VersionBounds) -> str:
    """Return bounds as they are written in a rule: `>=2.1,<4.1`."""
    return ",".join(f"{op}{bound}" for op, bound in bounds)


def _meets(parts: tuple[int, ...], op: str, bound: tuple[int, ...]) -> bool:
    padded = (*parts, *(0,) * len(bound))[: len(bound)]
    return _HOLDS[op](padded, bound)


def _parts(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBERS.findall(text))
