"""Log text made harmless for a reader: what a terminal or an eye would obey or miss is written as an escape."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return one line that shows exactly what `text` holds.

    Control characters, bidirectional and zero-width marks, lone surrogates and line ends become `\\x1b`-like escapes; tabs
    become two blanks. Printable text of any language stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    if character == "\t":
        return "  "
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
