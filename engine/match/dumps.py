"""Matches the configurations that Kafka processes print. The rule id is `config:<class>`; the captures are settings by name."""

from __future__ import annotations

import re
from collections.abc import Set

from engine.match.checks import Captures, FieldCheck
from engine.match.fields import Fields
from engine.model.configs import CLIENT_ID, GROUP_ID
from engine.model.signs import folded

_LINE = re.compile(r"^[ \t]*([a-z][\w.-]{0,199}) = ?([^\n]{0,199})$", re.MULTILINE)  # a longer value is no use to a reader
_EMPTY = ("", "null", "[hidden]")  # values that are not captured


def dump_check(kind: str, names: Set[str]) -> FieldCheck:
    """Return the check for a configuration of class `kind`. It captures the settings `names`, the client id, the group id."""
    heading, wanted = f"{kind} values:", {*names, CLIENT_ID, GROUP_ID}

    def check(fields: Fields) -> Captures | None:
        head = b" ".join(fields.values("message")).decode("utf-8", "replace").rstrip()
        if not f" {head}".endswith(f" {heading}"):
            return None
        printed = _LINE.findall(fields.text.decode("utf-8", "replace"))
        return {name: value.strip() for name, value in printed if name in wanted and value.strip() not in _EMPTY}

    return check


def dump_signs(kind: str) -> tuple[str, ...]:
    """Return the signs of a configuration of class `kind`: its heading."""
    return (folded(f"{kind} values:".encode()).decode(),)
