"""Turns the bytes of a line into clean text. Never fails, takes time proportional to the line, marks a line that it cuts."""

from __future__ import annotations

import re

LINE_BYTES = 256 * 1024  # the rest of a longer line is left out
_BOM = b"\xef\xbb\xbf"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
# Markdown's bold, which people set around the words that they ask about; but not `**` in a path or in a masked secret
_BOLD = re.compile(r"(?<![\w*/])\*\*(?=[^\s*/])([^*\n]{1,500}?)(?<=[^\s*/])\*\*(?![\w*/])")
# the markup for colours in the code block of a web page, as copied out of issue trackers
_SPAN = re.compile(r'</?(?:span|pre)(?: (?:class|style)="[^"<>\n]{0,100}")?>')
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def decode_line(value: bytes) -> tuple[str, bool]:
    """Return the text of a line, and whether it was cut at LINE_BYTES; the text of a cut line ends with a note of that.

    Invalid UTF-8 becomes U+FFFD. A byte order mark, the line end, and NULs at either end are removed; a copy-and-truncate
    rotation leaves such NULs where it cut the file.
    """
    value = value.strip(b"\x00").removeprefix(_BOM).rstrip(b"\r\n")
    if len(value) <= LINE_BYTES:
        return clean(value.decode("utf-8", "replace")), False
    text = value[:LINE_BYTES].decode("utf-8", "ignore")
    return clean(text) + f" [cut: {len(value) - LINE_BYTES} more bytes in this line]", True


def plain(text: str) -> str:
    """Return `text` without Markdown's marks for bold and without a web page's markup for colours."""
    if "</" in text or "<pre" in text:
        text = _SPAN.sub("", text)
    return _BOLD.sub(r"\1", text) if "**" in text else text


def clean(text: str) -> str:
    """Return `text` without ANSI escape sequences. Control characters other than tab and line feed, and lone surrogates, become
    U+FFFD; CR LF becomes LF."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))
