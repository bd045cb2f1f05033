r"""Tells whether a process printed a line itself or only quotes another's. Pure.

Whoever can make an application fail can have it print any text. A process's own words begin the message, and where the layout
prints a logger, it is in one of the process's packages. A quotation stands later in the message, or has another logger.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from engine.match.checks import Captures, FieldCheck, expression
from engine.match.fields import Fields

_CLASS_ALONE = r"[A-Z][A-Za-z0-9_$]*\z"  # a layout that prints no packages


def from_loggers(check: FieldCheck, packages: Sequence[str]) -> FieldCheck:
    """Return `check` limited to events whose logger is below one of `packages`, and to events without a logger."""
    if not packages:
        return check
    own = expression(below(tuple(packages)))

    def checked(fields: Fields) -> Captures | None:
        loggers = fields.values("logger")
        return check(fields) if not loggers or any(own.search(logger) for logger in loggers) else None

    return checked


@cache
def below(packages: tuple[str, ...]) -> str:
    """Return the expression that matches loggers below `packages`, in full or abbreviated (o.a.k.s.KafkaServer), and loggers
    that are a class name alone."""
    return rf"\A(?:{'|'.join(map(_abbreviable, packages))}|{_CLASS_ALONE})"


def _abbreviable(package: str) -> str:
    parts = (f"{re.escape(part[0])}(?:{re.escape(part[1:])})?" for part in package.split(".") if part)
    return r"\.".join(parts) + r"(?:\.|\z)"
