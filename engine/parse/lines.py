"""From the bytes of a line to clean text: never fails, takes time proportional to the line, and says when it left some out."""

from __future__ import annotations

import re

LINE_BYTES = 256 * 1024  # of a line; the rest is left out
_BOM = b"\xef\xbb\xbf"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
# Markdown's bold, which people set around the words they ask about; not a path's `**`, nor a masked secret
_BOLD = re.compile(r"(?<![\w*/])\*\*(?=[^\s*/])([^*\n]{1,500}?)(?<=[^\s*/])\*\*(?![\w*/])")
# the colours of a code block of a web page, as issue trackers hand it over
_SPAN = re.compile(r'</?(?:span|pre)(?: (?:class|style)="[^"<>\n]{0,100}")?>')
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def decode_line(value: bytes) -> tuple[str, bool]:
    """Return the text of a line and whether it had to be cut at LINE_BYTES; then the text ends by saying so.

    Broken UTF-8 becomes U+FFFD. A byte order mark, the NULs that a copy-and-truncate rotation leaves at the border, and the
    line end are dropped.
    """
    value = value.strip(b"\x00").removeprefix(_BOM).rstrip(b"\r\n")
    if len(value) <= LINE_BYTES:
        return clean(value.decode("utf-8", "replace")), False
    kept = value[:LINE_BYTES].decode("utf-8", "ignore")
    return clean(kept) + f" [cut: {len(value) - LINE_BYTES} more bytes in this line]", True


def plain(text: str) -> str:
    """Return `text` without the marks of Markdown's bold and of a web page's colours."""
    if "</" in text or "<pre" in text:
        text = _SPAN.sub("", text)
    return _BOLD.sub(r"\1", text) if "**" in text else text


def clean(text: str) -> str:
    """Return `text` without colours; control characters other than tab and line end, and lone surrogates, become U+FFFD."""
    if text.isprintable():
        return text
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))
