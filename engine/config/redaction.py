"""The `redact` section of tocsin.yml: what is masked in log text besides secrets."""

from __future__ import annotations

from typing import Annotated

import re2
from pydantic import Field

from engine.config.faults import validated_by
from engine.dsl.codes import Code
from engine.dsl.schema import Flag, Strict
from engine.model.redaction import Redaction


def _check_pattern(pattern: str) -> None:
    """Raise ValueError unless `pattern` is an RE2 expression that does not match the empty text."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError from error
    if compiled.search("") is not None:
        raise ValueError


RedactionPattern = Annotated[
    str,
    validated_by(
        _check_pattern,
        Code.BAD_REDACTION,
        "an RE2 expression that matches at least one character",
        "for example: EMP-[0-9]{6}, or customer=([^ ,]+) to hide the text of the group; RE2 has no look-around",
    ),
]


class RedactEntry(Strict):
    """the redaction besides secrets: email, phone, patterns"""

    email: Flag = True
    phone: Flag = False
    patterns: list[RedactionPattern] = Field(default=[])


def redaction_of(entry: RedactEntry) -> Redaction:
    """Return the redaction of the section."""
    return Redaction(entry.email, entry.phone, tuple(entry.patterns))
