"""Write YAML as rule files have it: text in blocks, so that a log line stands there as it was printed."""

from __future__ import annotations

import json
import re

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")
_PRINTABLE = re.compile(r"[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def scalar(text: str) -> str:
    """Return `text` on one line: plain where that is safe, else in double quotes."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=not _PRINTABLE.fullmatch(text))


def entry(key: str, text: str, indent: int = 0) -> str:
    """Return `key: text` as one line."""
    return f"{' ' * indent}{key}: {scalar(text)}\n"


def folded(key: str, text: str, indent: int = 0) -> str:
    """Return `key` with `text` (one line) below it, where nothing in it has to be quoted."""
    text = " ".join(text.split())
    if not _PRINTABLE.fullmatch(text) or not text:
        return entry(key, text, indent)
    return f"{' ' * indent}{key}: >-\n{' ' * (indent + 2)}{text}\n"


def literal(key: str, text: str, indent: int = 0) -> str:
    """Return `key` with the lines of `text` below it as they are."""
    lines = text.rstrip("\n").split("\n")
    if not _PRINTABLE.fullmatch(text) or not lines[0]:
        return entry(key, text, indent)
    mark = "|2" if lines[0].startswith((" ", "\t")) else "|"
    pad = " " * (indent + 2)
    return f"{' ' * indent}{key}: {mark}\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in lines)
