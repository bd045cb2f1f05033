"""Make log text harmless for a reader: characters that a terminal obeys, or that a reader cannot see, are written as
escapes."""

from __future__ import annotations


def visible(text: str) -> str:
    """Return one line that shows exactly the content of `text`.

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
