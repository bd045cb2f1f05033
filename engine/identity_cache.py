"""What is made of a large immutable object, a plan or its formats, is made once: found again by identity, as to hash it or to
compare it would cost more than most of what is asked of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

KEPT = 4


def remembered(make: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """Return `make` that remembers what it made of the last KEPT objects, which it keeps alive."""
    known: list[tuple[Given, Made]] = []  # newest first

    @wraps(make)
    def found(given: Given) -> Made:
        for each, made in known:
            if each is given:
                return made
        made = make(given)
        known.insert(0, (given, made))
        del known[KEPT:]
        return made

    return found
