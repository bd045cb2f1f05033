"""Signs: texts of which one stands in every event that a test or a rule holds of, so that no other event has to be tested.

A sign is compared with folded text, in which case, digits and the length of blank stretches are lost. So events whose texts are
equal except for digits have the same signs.
"""

from __future__ import annotations

_UPPER, _LOWER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
_DIGITS, _BLANKS = b"0123456789", b"\t\n\v\f\r"
_TABLE = bytes.maketrans(_UPPER + _DIGITS + _BLANKS, _LOWER + b"0" * len(_DIGITS) + b" " * len(_BLANKS))


def folded(text: bytes) -> bytes:
    """Return UTF-8 text in small letters, with every digit a 0 and every stretch of blanks one blank.

    What stands in a text, in whatever case, stands in the folded text when it is folded too.
    """
    if not text.isascii():
        text = text.decode("utf-8", "replace").casefold().encode()
    text = text.translate(_TABLE)
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text
