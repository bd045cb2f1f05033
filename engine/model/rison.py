"""Rison, the notation of the state in Kibana's addresses: JSON that needs little escaping in a URL. Pure.

Source: the grammar in the README of Nanonid/rison; Kibana decodes it with the package `rison-node`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Rison = str | int | bool | None | Mapping[str, "Rison"] | Sequence["Rison"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPED = re.compile(r"[!']")


def rison(value: Rison) -> str:
    """Return `value` in rison; keys stay in their order. Text is in quotes unless it is a plain word."""
    if value is None:
        return "!n"
    if isinstance(value, bool):
        return "!t" if value else "!f"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return value if _WORD.match(value) else f"'{_ESCAPED.sub(lambda sign: f'!{sign[0]}', value)}'"
    if isinstance(value, Mapping):
        return f"({','.join(f'{rison(key)}:{rison(part)}' for key, part in value.items())})"
    return f"!({','.join(map(rison, value))})"
