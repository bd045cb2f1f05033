"""Reads the chain of exception classes out of a stack trace, whether it is on lines of its own or all on one. Linear time."""

from __future__ import annotations

from collections.abc import Iterator

import re2

_CLASS = r"(?:[a-zA-Z_]\w*\.)+[A-Z][\w$]*"
_THROWN = (
    r"(?:(?:[a-zA-Z_]\w*\.)+[A-Z][\w$]*(?:Exception|Error|Throwable|Failure|Problem)[\w$]*"
    r"|kafka\.errors\.[A-Z]\w*)"  # kafka-python's classes follow no naming rule
)
_SIGNS = ("Exception", "Error", "Caused by", "exception", "Throwable", "Problem", "kafka.errors.")
_CHAIN = re2.compile(
    rf"(?m)(?:^ *(?:Exception in thread \"[^\"]*\" )?|\b[Ee]xception ?: |\"trace\" ?: ?\")({_THROWN})(?:[:;\s]|$)"
    rf"|(?:^ *|[^\t\n])\b(?:Caused by:|nested exception is) ({_CLASS})"
)
_NAMED_NEXT = re2.compile(rf":? ({_THROWN})(?:[:;\s]|$)")
_NAME_CHARS = 300  # no class name is longer


def exception_chain(text: str) -> tuple[str, ...]:
    """Return the exception classes of an event, outermost first, innermost cause last, unique. A class that occurs twice has
    the place of its last occurrence.

    Classes count at the start of a line, after `Caused by:`, `nested exception is`, `exception :` or a quoted `"trace":`.
    A `Caused by:` behind a tab is the cause of a suppressed exception and does not count.

    Args:
        text: the event without its header.
    """
    if not any(sign in text for sign in _SIGNS):
        return ()
    chain: dict[str, None] = {}
    for match in _CHAIN.finditer(text):
        for name in (match.group(1) or match.group(2), *_named_next(text, match.end())):
            chain.pop(name, None)
            chain[name] = None
    return tuple(chain)


def _named_next(text: str, start: int) -> Iterator[str]:
    """Yield the classes that directly follow each other from `start`: `A: B: message` is B's message, passed on by A."""
    while match := _NAMED_NEXT.match(text[start : start + _NAME_CHARS]):
        yield match.group(1)
        start += match.end()
