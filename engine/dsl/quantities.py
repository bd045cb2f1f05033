"""Typed scalars of the rule language: flags, counts, durations, version ranges. Text in, value or ValueError out."""

from __future__ import annotations

import re

UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
OPERATORS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "=="}
MAX_DIGITS = 19
MAX_DURATION_S = 3650 * 86400.0  # any valid timestamp plus this is still within the calendar

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
_BOUND = re.compile(r"(<=|>=|==|!=|<|>|=)\s*([0-9]+(?:\.[0-9]+){0,3})")


def flag(text: str) -> bool:
    """Return the value of `true` or `false`. Raises ValueError for anything else, `yes` and `on` included."""
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def count(text: str) -> int:
    """Return a whole number, not negative, of at most 19 digits. Raises ValueError otherwise."""
    if not re.fullmatch(rf"[0-9]{{1,{MAX_DIGITS}}}", text):
        raise ValueError(text)
    return int(text)


def duration_s(text: str) -> float:
    """Return the seconds of a duration such as 500ms, 30s, 10m, 2h or 3d. Raises ValueError otherwise, or above 3650 days."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise ValueError(text)
    seconds = round(float(parts[1]) * UNIT_S[parts[2]], 6)
    if seconds > MAX_DURATION_S:
        raise ValueError(text)
    return seconds


def versions(text: str) -> tuple[tuple[str, str], ...]:
    """Return the bounds of a version range: ">=2.1,<4.1" gives ((">=", "2.1"), ("<", "4.1")). Raises ValueError otherwise."""
    bounds = [_BOUND.fullmatch(part.strip()) for part in text.split(",")]
    if not all(bounds):
        raise ValueError(text)
    return tuple(("==" if bound[1] == "=" else bound[1], bound[2]) for bound in bounds if bound)
