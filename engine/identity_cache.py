"""A cache keyed by the identity of a large immutable object, such as a plan: hashing or comparing the object would cost more
than most values computed from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")

CACHE_SIZE = 4


def cached_by_identity(compute: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Return `compute` with a cache of its last CACHE_SIZE results; the cache keeps their arguments alive."""
    entries: list[tuple[Key, Result]] = []  # newest first

    @wraps(compute)
    def cached(key: Key) -> Result:
        for other, result in entries:
            if other is key:
                return result
        result = compute(key)
        entries.insert(0, (key, result))
        del entries[CACHE_SIZE:]
        return result

    return cached
