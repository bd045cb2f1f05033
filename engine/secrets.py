"""Secrets: named in tocsin.yml, read when they are needed, never printed. Imports msgspec and errors only."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError

KINDS = ("env", "file")


class Secret(Struct, frozen=True):
    """Where a secret is: the environment variable or the file `name`. Its repr and str show only that."""

    kind: str
    name: str

    def __str__(self) -> str:
        """Return it as it is written in the configuration."""
        return f"{self.kind}:{self.name}"

    def reveal(self) -> str:
        """Return the secret without surrounding blanks. Raises UsageError, which names only the place, when there is none."""
        if self.kind == "env":
            value, what = os.environ.get(self.name, ""), f"the environment variable {self.name} is not set"
        else:
            value, what = _content(self.name)
        if not value.strip():
            raise UsageError(f"{self}: {what}")
        return value.strip()


def parse_secret(text: str) -> Secret:
    """Return the secret that `env:NAME` or `file:PATH` names. Raises ValueError, which does not repeat `text`."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in KINDS or not name.strip():
        raise ValueError("a secret is named as env:NAME or file:PATH")
    return Secret(kind, name.strip())


def _content(path: str) -> tuple[str, str]:
    try:
        return Path(path).read_text(encoding="utf-8"), "the file is empty"
    except (OSError, UnicodeDecodeError) as error:
        return "", f"the file cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"
