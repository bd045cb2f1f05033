"""What belongs to what when no header says so: continuation lines of bare text, and where a JSON document ends."""

from __future__ import annotations

import re

_FRAME = r"[\w$.]+\.[\w$<>]+\((?:\w+\.(?:java|scala|kt):\d+|Native Method|Unknown Source)\)"  # its `at` is on the line before
_RUBY = r"(?:from )?[\w./@+-]+\.(?:rb|ru):\d+:in [`']"  # not indented, unlike those of any other language
_POSTGRES = r"(?:CONTEXT|DETAIL|HINT|STATEMENT):  "  # what PostgreSQL adds to a message, two blanks behind the colon
# Snowflake's connector, below its exception
_SNOWFLAKE = r"(?:\[SF_KAFKA_CONNECTOR\] )?Error Code: \d{4}\s*$|\[SF_KAFKA_CONNECTOR\] (?:Detail|Message): "
_STACK = r"Stack \(most recent call last\)"  # Python's, without an exception
_TRACE = (
    r"at (?:[\w$.<]|\[Source: )|Caused by: |Reason: |Suppressed: |\.\.\. \d+ (?:more|common frames)"
    rf"|{_POSTGRES}|{_SNOWFLAKE}|{_FRAME}|{_RUBY}|{_STACK}"
)
_CONTINUES = re.compile(rf"""\s|["'\]}}),]|{_TRACE}""")
_TRACEBACK = "Traceback (most recent call last)"
_OPEN_ENDS = re.compile(
    r"(?:due to|error\(s\)|Caused by|following (?:error|exception)|serialization error|during processing|to shut down): ?$"
)
_PIECE = re.compile(r"\s*(?:at [\w$.<]|Caused by: |\.\.\. \d+ more)")
_THROWN = re.compile(r"(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\b")
_BRACES = re.compile(r'[{}"]|\\.')


def continues(text: str) -> bool:
    """Tell whether a line of bare text goes on with the line before it: a stack frame, a cause or reason, an indented line,
    what PostgreSQL or Snowflake's connector adds, the rest of a quoted or bracketed text."""
    return _CONTINUES.match(text) is not None


def awaits_reason(text: str, awaiting: bool) -> bool:
    """Tell whether, after a line of bare text, its reason is still to come: the last line of a Python traceback, which alone is
    not indented, the exception below a line that ends with `due to:`, as Streams puts it, with a blank line between or not, or
    the first of what is not valid below one that ends with `error(s):`, as Connect's REST does."""
    ahead = awaiting and (text[:1].isspace() or not text)
    return text.startswith(_TRACEBACK) or open_ended(text) or ahead


def open_ended(text: str) -> bool:
    """Tell whether a line ends with the colon behind which its reason follows."""
    return text.endswith((":", ": ")) and _OPEN_ENDS.search(text) is not None


def spaced(text: str) -> bool:
    """Tell whether a line is a piece of a stack trace, which a copy may have printed with a blank line below each."""
    return _PIECE.match(text) is not None


def thrown(text: str) -> bool:
    """Tell whether a line begins with the class of an exception."""
    return _THROWN.match(text) is not None


def opens_document(text: str) -> bool:
    """Tell whether a JSON document begins at the first character of the line."""
    return text.startswith("{")


class Braces:
    """Counts the braces of a document line by line. Braces inside strings do not count; a string may hold line ends."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False

    def read(self, line: str) -> bool:
        """Take in the next line; return whether the document is complete: all its braces closed, or its last one alone at the
        margin (an unescaped quote inside a string would otherwise hide the end)."""
        for sign in _BRACES.findall(line):
            if sign == '"':
                self._in_string = not self._in_string
            elif not self._in_string and sign in "{}":
                self._depth += 1 if sign == "{" else -1
        return self._depth <= 0 or line.rstrip() == "}"
