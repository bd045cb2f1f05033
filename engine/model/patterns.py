"""Names chosen by patterns: `*`, `?` and `[...]` as in a shell; `!` in front leaves out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase


def fits(names: Collection[str], patterns: Sequence[str]) -> bool:
    """Return whether one of `names` matches one of the patterns without `!` (any names do when there are none) and none of
    `names` matches one of the others."""
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    if any(fnmatchcase(name, pattern) for name in names for pattern in unwanted):
        return False
    return not wanted or any(fnmatchcase(name, pattern) for name in names for pattern in wanted)
