"""Finds the secrets in a text. A finder is a pure function from UTF-8 bytes to the stretches that are to be masked.

All expressions are RE2's, and no finder looks at a byte more than a bounded number of times, so time is linear in the text.
"""

from __future__ import annotations

Stretch = tuple[int, int]  # start and end, in bytes; the end is exclusive
