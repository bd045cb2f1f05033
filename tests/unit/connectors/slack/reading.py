"""Read blocks of Slack as a person sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connectors.slack.limits import SlackBlock


def shown(blocks: Iterable[SlackBlock]) -> list[str]:
    """Return the texts and addresses of each block, joined; a date as its fallback."""
    return ["".join(_texts(block)) for block in blocks]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        keys = ("text", "url", "fallback")
        return [t for k, v in value.items() for t in ([v] if k in keys and isinstance(v, str) else _texts(v))]
    return [t for item in value for t in _texts(item)] if isinstance(value, list) else []
