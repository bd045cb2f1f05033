"""The `redact` section of tocsin.yml: what is taken out of texts beside secrets."""

from __future__ import annotations

from typing import Annotated

import re2
from pydantic import Field

from engine.config.faults import checked
from engine.dsl.codes import Code
from engine.dsl.schema import Flag, Strict
from engine.model.redaction import Redaction


def _finds_something(pattern: str) -> None:
    """Raise ValueError unless `pattern` is an expression of RE2 that needs something to be found."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as wrong:
        raise ValueError from wrong
    if compiled.search("") is not None:
        raise ValueError


Hidden = Annotated[
    str,
    checked(
        _finds_something,
        Code.BAD_REDACTION,
        "an expression of RE2 that finds something",
        "for example: EMP-[0-9]{6}, or customer=([^ ,]+) to hide what is in the group; RE2 has no look-around",
    ),
]


class RedactEntry(Strict):
    """what is hidden beside secrets: email, phone, patterns"""

    email: Flag = True
    phone: Flag = False
    patterns: list[Hidden] = Field(default=[])


def redaction_of(entry: RedactEntry) -> Redaction:
    """Return what the section stands for."""
    return Redaction(entry.email, entry.phone, tuple(entry.patterns))
