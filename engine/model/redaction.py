"""What is taken out of texts beside secrets, as the configuration has it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

Redact = Callable[[str], str]  # returns a text without its secrets


class Redaction(Struct, frozen=True):
    """Whether e-mail addresses and telephone numbers are hidden, and RE2 expressions of what else is: their groups, or, where
    one has no group, all that it matches."""

    email: bool = True
    phone: bool = False
    patterns: tuple[str, ...] = ()
