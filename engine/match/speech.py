r"""Own words: whether a line is what a process says itself, or one that only quotes it. Pure.

Whoever can make an application fail can have it print any text. What a process says of itself begins a message, and comes from
a logger of its own packages where the layout prints one; what is quoted stands further on, or behind another logger.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from engine.match.checks import Captures, FieldCheck, expression
from engine.match.fields import Fields

_CLASS_ALONE = r"[A-Z][A-Za-z0-9_$]*\z"  # a layout that prints no packages


def from_loggers(check: FieldCheck, packages: Sequence[str]) -> FieldCheck:
    """Return `check` without events whose logger is below none of `packages`; one that has no logger stays."""
    if not packages:
        return check
    own = expression(below(tuple(packages)))

    def checked(fields: Fields) -> Captures | None:
        loggers = fields.values("logger")
        return check(fields) if not loggers or any(own.search(logger) for logger in loggers) else None

    return checked


@cache
def below(packages: tuple[str, ...]) -> str:
    """Return the expression of loggers below `packages`, with their names abbreviated or not: o.a.k.s.KafkaServer too."""
    return rf"\A(?:{'|'.join(map(_abbreviable, packages))}|{_CLASS_ALONE})"


def _abbreviable(package: str) -> str:
    parts = (f"{re.escape(part[0])}(?:{re.escape(part[1:])})?" for part in package.split(".") if part)
    return r"\.".join(parts) + r"(?:\.|\z)"
