"""Secrets: the configuration holds a reference; the secret is read when it is needed and never printed.

Imports msgspec and errors only.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError

KINDS = ("env", "file")
# settings of Spark whose values are secret: those that Spark masks (spark.redaction.regex), but for paths and names of secrets
_SPARK_SECRET = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
_SPARK_NO_SECRET = re.compile(r"file$|[.]secrets[.]|[.]secretKeyRef[.]|provider$|[.]enabled$", re.IGNORECASE)


class Secret(Struct, frozen=True):
    """A reference to a secret: the environment variable or the file `name`. Its repr and str show the reference only."""

    kind: str
    name: str

    def __str__(self) -> str:
        """Return the reference as written in the configuration."""
        return f"{self.kind}:{self.name}"

    def reveal(self) -> str:
        """Return the secret without surrounding blanks. Raises UsageError, with the reference only, when there is none."""
        if self.kind == "env":
            value, problem = os.environ.get(self.name, ""), f"the environment variable {self.name} is not set"
        else:
            value, problem = _content(self.name)
        if not value.strip():
            raise UsageError(f"{self}: {problem}")
        return value.strip()


def revealed(value: str | Secret | None) -> str:
    """Return the text of a value that may be secret; empty for None. Raises the errors of Secret.reveal."""
    return value.reveal() if isinstance(value, Secret) else value or ""


def parse_secret(text: str) -> Secret:
    """Parse `env:NAME` or `file:PATH`. Raises ValueError without `text` in its message, as that may be the secret itself."""
    kind, colon, name = text.partition(":")
    if not colon or kind not in KINDS or not name.strip():
        raise ValueError("a secret is named as env:NAME or file:PATH")
    return Secret(kind, name.strip())


def _content(path: str) -> tuple[str, str]:
    try:
        return Path(path).read_text(encoding="utf-8"), "the file is empty"
    except (OSError, UnicodeDecodeError) as error:
        return "", f"the file cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})"


def is_secret_setting(name: str) -> bool:
    """Return whether the value of Spark's setting `name` is a secret."""
    return _SPARK_SECRET.search(name) is not None and _SPARK_NO_SECRET.search(name) is None
