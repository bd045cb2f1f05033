"""Write YAML in the style of rule files: texts are block scalars, so that log lines are unchanged."""

from __future__ import annotations

import json
import re

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_PRINTABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def scalar(text: str) -> str:
    """Return `text` as a scalar on one line: plain where that is safe, else in double quotes."""
    if _PLAIN.fullmatch(text):
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def entry(key: str, text: str, indent: int = 0) -> str:
    """Return `key: text` as one line."""
    return f"{' ' * indent}{key}: {scalar(text)}\n"


def folded(key: str, text: str, indent: int = 0) -> str:
    """Return `key` with `text`, joined to one line, as a folded block scalar; quoted when it is empty or not printable."""
    text = " ".join(text.split())
    if not _PRINTABLE.fullmatch(text) or not text:
        return entry(key, text, indent)
    return f"{' ' * indent}{key}: >-\n{' ' * (indent + 2)}{text}\n"


def literal(key: str, text: str, indent: int = 0) -> str:
    """Return `key` with `text` as a literal block scalar; quoted when that cannot hold it."""
    lines = text.rstrip("\n").split("\n")
    if not _PRINTABLE.fullmatch(text) or not lines[0]:
        return entry(key, text, indent)
    mark = "|2" if lines[0].startswith((" ", "\t")) else "|"
    pad = " " * (indent + 2)
    return f"{' ' * indent}{key}: {mark}\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in lines)
