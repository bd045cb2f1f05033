"""Which lines belong together when no header decides it: continuation lines of bare text, and the end of a JSON document."""

from __future__ import annotations

import re

_FRAME = r"[\w$.]+\.[\w$<>]+\((?:\w+\.(?:java|scala|kt):\d+|Native Method|Unknown Source)\)"  # with `at` on the line before
_RUBY = r"(?:from )?[\w./@+-]+\.(?:rb|ru):\d+:in [`']"  # frames of Ruby, the only ones that are not indented
_POSTGRES = r"(?:CONTEXT|DETAIL|HINT|STATEMENT):  "  # PostgreSQL's additions to a message, with two blanks behind the colon
# Snowflake's connector prints these below its exception
_SNOWFLAKE = r"(?:\[SF_KAFKA_CONNECTOR\] )?Error Code: \d{4}\s*$|\[SF_KAFKA_CONNECTOR\] (?:Detail|Message): "
_ORACLE = r"ORA-\d{5}: |\w[\w-]* Error: \d+: |Additional information: "  # Oracle's causes, one below the other
_CUT = r"(?:\.{3,}|\[\.{3}\]|…)\s*$"  # where whoever copied a trace left lines out
_STACK = r"Stack \(most recent call last\)"  # a Python stack without an exception
_TRACE = (
    r"at (?:[\w$.<]|\[Source: )|Caused by: |Reason: |Suppressed: |\.\.\. \d+ (?:more|common frames)"
    rf"|{_POSTGRES}|{_SNOWFLAKE}|{_ORACLE}|{_FRAME}|{_RUBY}|{_CUT}|{_STACK}"
)
_CONTINUES = re.compile(rf"""\s|["'\]}}),]|{_TRACE}""")
_TRACEBACK = "Traceback (most recent call last)"
_OPEN_ENDS = re.compile(
    r"(?:due to|error\(s\)|Caused by|following (?:error|exception)|serialization error|during processing|to shut down): ?$"
)
_PIECE = re.compile(r"\s*(?:at [\w$.<]|Caused by: |\.\.\. \d+ more)")
_THROWN = re.compile(r"(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b")
_BRACES = re.compile(r'[{}"]|\\.')  # an escaped character is matched so that it is not taken for a brace or quote


def continues(text: str) -> bool:
    """Return whether a line of bare text continues the line before it: a stack frame, a cause or reason, an indented line, an
    addition of PostgreSQL, Oracle or Snowflake's connector, the rest of a quoted or bracketed text."""
    return _CONTINUES.match(text) is not None


def awaits_reason(text: str, awaiting: bool) -> bool:
    """Return whether the reason of an error is still to come after a line of bare text.

    Such reasons are the last line of a Python traceback, the only one that is not indented; the exception below a line of
    Kafka Streams that ends with `due to:`, with or without a blank line between; and the first entry below a line of Connect's
    REST API that ends with `error(s):`.

    Args:
        awaiting: whether the reason was still to come before this line.
    """
    still_awaiting = awaiting and (text[:1].isspace() or not text)
    return text.startswith(_TRACEBACK) or open_ended(text) or still_awaiting


def open_ended(text: str) -> bool:
    """Return whether a line ends with a colon that announces a reason on the next line."""
    return text.endswith((":", ": ")) and _OPEN_ENDS.search(text) is not None


def spaced(text: str) -> bool:
    """Return whether a line is part of a stack trace. Copied traces may have a blank line below every line."""
    return _PIECE.match(text) is not None


def thrown(text: str) -> bool:
    """Return whether a line begins with the class of an exception."""
    return _THROWN.match(text) is not None


def opens_document(text: str) -> bool:
    """Return whether a JSON document begins at the first character of the line."""
    return text.startswith("{")


class Braces:
    """Counts the braces of a JSON document line by line. Braces inside strings do not count; a string may hold line ends."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False

    def read(self, line: str) -> bool:
        """Read the next line and return whether the document is complete: all its braces are closed, or this line is nothing
        but a closing brace at the margin (an unescaped quote inside a string would otherwise hide the end)."""
        for character in _BRACES.findall(line):
            if character == '"':
                self._in_string = not self._in_string
            elif not self._in_string and character in "{}":
                self._depth += 1 if character == "{" else -1
        return self._depth <= 0 or line.rstrip() == "}"
