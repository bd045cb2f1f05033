"""The configuration of redaction: what is masked in addition to secrets."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

Redact = Callable[[str], str]  # returns a text without its secrets


class Redaction(Struct, frozen=True):
    """Whether e-mail addresses and telephone numbers are masked, and RE2 expressions whose groups are masked, or whose whole
    match when they have no group."""

    email: bool = True
    phone: bool = False
    patterns: tuple[str, ...] = ()
