"""What shippers and viewers put around a log line: one file a wrapper, found by scanning this folder.

Pure, one record at a time. A wrapper module has:

    FIRST: str                      the characters that a wrapped line can begin with
    ORDER: int                      lower is asked first, when several can begin with the same character
    unwrap(record) -> Record | None the record without this wrapper; None when it does not bear it
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from engine.model.records import Record

Unwrap = Callable[[Record], Record | None]


@cache
def by_first_character() -> Mapping[str, tuple[Unwrap, ...]]:
    """Return the wrappers that can begin with each character, in the order they are asked."""
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    modules.sort(key=lambda module: (module.ORDER, module.__name__))
    characters = {character for module in modules for character in module.FIRST}
    return {c: tuple(module.unwrap for module in modules if c in module.FIRST) for c in characters}
