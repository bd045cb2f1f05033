"""What in a text is secret: finders, each a pure function from UTF-8 bytes to the stretches that are to be hidden.

All expressions are RE2's, and no finder looks at a stretch more than a bounded number of times: time is linear in the text.
"""

from __future__ import annotations

Stretch = tuple[int, int]  # from where to where, in bytes
